import type { Server } from 'node:http'
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

/** Tracks since when each connection of a server is idle, which Node does not report. */
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
