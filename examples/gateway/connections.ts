import type { IncomingMessage, Server } from 'node:http'
import type { Socket } from 'node:net'

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
    server.prependListener('request', (req, res) => {
      const use = this.#uses.get(req.socket)
      if (!use) return
      use.open++
      res.on('close', use.end)
    })
  }

  /**
   * Returns false for a request on a connection that has too many unanswered ones. The connection is cut: no answer could
   * overtake theirs.
   */
  admits({ socket }: IncomingMessage): boolean {
    const use = this.#uses.get(socket)
    if (use === undefined || use.open <= MAX_UNANSWERED) return true
    socket.destroy()
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
