import type { RequestListener, Server } from 'node:http'
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

/** Tracks what runs on each connection of a server, and since when it is idle, which Node does not report. */
export class Connections {
  readonly #uses = new Map<Socket, Use>()

  constructor(server: Server) {
    server.on('connection', (socket: Socket) => {
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
