import { readFileSync } from 'node:fs'
import type { IncomingMessage, RequestListener, Server } from 'node:http'
import type { Socket } from 'node:net'
import type { Call } from 'express-model-gateway'

/** Counts open calls, so that a shutdown can wait for those that outlive their connection. */
export class OpenCalls {
  #open = 0
  #whenNone: (() => void) | undefined
  readonly #onEnd: (call: Call) => void

  /** @param onEnd runs at the end of each call, behind all that it gives back. */
  constructor(onEnd: (call: Call) => void) {
    this.#onEnd = (call) => {
      this.#open--
      try {
        onEnd(call)
      } finally {
        if (this.#open === 0) this.#whenNone?.()
      }
    }
  }

  readonly add = (call: Call): void => {
    this.#open++
    call.onEnd('open calls', this.#onEnd)
  }

  /** Resolves when all calls have ended, or after `withinMs`. */
  async ended(withinMs: number): Promise<void> {
    if (this.#open === 0) return
    let timer: NodeJS.Timeout | undefined
    await new Promise<void>((resolve) => {
      this.#whenNone = resolve
      timer = setTimeout(resolve, withinMs)
    })
    clearTimeout(timer)
  }
}

interface Use {
  /** How many requests on the connection are not answered completely. */
  open: number
  idleSince: number
  /** Bytes received when the connection became idle; more bytes are the beginning of another request. */
  read: number
  /** Notes that a request of it is answered. */
  readonly end: () => void
}

/**
 * The most requests that a caller may send on a connection before the first of them is answered. Node begins all that
 * have come in one packet, which can be a thousand. Clients in use send one at a time.
 */
const MAX_UNANSWERED = 32

/** What connections of callers leave to databases and files, before they share the rest with those to upstreams. */
const OTHER_DESCRIPTORS = 128
/** With fewer, no caller could be served. */
const MIN_CONNECTIONS = 16
/** The share of all connections that is closed at once to make room. */
const ROOM = 1 / 16
/** So many may be too many until those to be closed are known, of what is left to others. */
const SOON = OTHER_DESCRIPTORS / 2
/** Within this time, the first request of a new connection comes. */
const FIRST_REQUEST_MS = 1000
/** How long idle connections are not looked for again when there were none. */
const NO_ROOM_MS = 100

/** Returns how many connections callers may have, so that each can have one to an upstream. */
function mostConnections(descriptors: number = descriptorLimit()): number {
  return Math.max(MIN_CONNECTIONS, Math.floor((descriptors - OTHER_DESCRIPTORS) / 2))
}

/** Returns how many files and sockets this process may have open; Infinity where the system does not tell. */
function descriptorLimit(): number {
  try {
    return Number(/^Max open files\s+(\d+)/m.exec(readFileSync('/proc/self/limits', 'utf8'))?.[1] ?? Infinity)
  } catch {
    return Infinity
  }
}

/**
 * Tracks what runs on each connection of a server, and since when it is idle, which Node does not report. Once there are as many as there
 * may be, idle ones give way to new ones.
 */
export class Connections {
  readonly #uses = new Map<Socket, Use>()
  readonly #most: number
  #noRoomUntil = Number.NEGATIVE_INFINITY
  #makesRoom = false

  constructor(server: Server, most: number = mostConnections()) {
    this.#most = most
    server.on('upgrade', ({ socket }: IncomingMessage) => {
      const use = this.#uses.get(socket)
      if (use) use.open++
    })
    server.on('connection', (socket: Socket) => {
      if (this.#uses.size >= most + SOON && !this.#makeRoom()) {
        socket.destroy()
        return
      }
      if (this.#uses.size >= most) this.#makeRoomSoon()
      const end = (): void => {
        use.open--
        use.idleSince = performance.now()
        use.read = socket.bytesRead
      }
      const use: Use = { open: 0, idleSince: performance.now(), read: 0, end }
      this.#uses.set(socket, use)
      socket.once('close', () => this.#uses.delete(socket))
    })
  }

  /**
   * Returns a listener that passes requests on, and counts them until they are answered. It cuts a connection that has too many
   * unanswered ones: no answer could overtake theirs.
   */
  counting(app: RequestListener): RequestListener {
    return (req, res) => {
      const use = this.#uses.get(req.socket)
      if (use !== undefined) {
        use.open++
        res.on('close', use.end)
        if (use.open > MAX_UNANSWERED) {
          req.socket.destroy()
          return
        }
      }
      app(req, res)
    }
  }

  /** Makes room after bytes that have arrived are read: a connection may be idle only because its request is not read yet. */
  #makeRoomSoon(): void {
    if (this.#makesRoom) return
    this.#makesRoom = true
    setImmediate(() => {
      this.#makesRoom = false
      this.#makeRoom()
    })
  }

  /**
   * Closes those that have been idle for the longest time, of the address that has most of them: nobody's connections are
   * closed for those of somebody else who has more. Those that are new, or on which a request has begun, are the last.
   */
  #makeRoom(): boolean {
    const now = performance.now()
    if (now < this.#noRoomUntil) return false
    const idle = [...this.#uses].filter(([, { open }]) => open === 0)
    const [most = []] = [...Map.groupBy(idle, ([{ remoteAddress }]) => remoteAddress).values()].sort(
      (a, b) => b.length - a.length,
    )
    const expects = ([{ bytesRead }, { read, idleSince }]: [Socket, Use]): boolean =>
      bytesRead > read || (bytesRead === 0 && now - idleSince < FIRST_REQUEST_MS)
    most.sort((a, b) => Number(expects(a)) - Number(expects(b)) || a[1].idleSince - b[1].idleSince)
    const closed = most.slice(0, Math.max(Math.ceil(this.#most * ROOM), this.#uses.size - this.#most))
    for (const [socket] of closed) {
      this.#uses.delete(socket)
      socket.destroy()
    }
    if (closed.length > 0) return true
    this.#noRoomUntil = now + NO_ROOM_MS
    return false
  }

  /**
   * Closes connections that have been idle since before a time. It runs after bytes that have arrived are read, so that no
   * request is lost.
   *
   * @param before a time of the monotonic clock.
   */
  endIdle(before: number): void {
    setImmediate(() => {
      for (const [socket, { open, idleSince, read }] of this.#uses) {
        if (open === 0 && idleSince < before && socket.bytesRead === read) socket.destroy()
      }
    })
  }
}
