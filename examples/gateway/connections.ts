import type { Server } from 'node:http'
import type { Socket } from 'node:net'

interface Use {
  /** Requests that came on it and are not answered to their end. */
  open: number
  idleSince: number
  /** Bytes it had received when it became idle; more are the beginning of another request. */
  read: number
  /** Notes that a request of it is answered. */
  readonly end: () => void
}

/** Which connections of a server wait for a request, and since when: Node tells only that they do. */
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
   * Ends connections that have waited since before a moment, and on which nothing has come. Behind the reading of what
   * has arrived, so that no request lies there unread.
   *
   * @param before on the monotonic clock.
   */
  endIdle(before: number): void {
    setImmediate(() => {
      for (const [socket, { open, idleSince, read }] of this.#uses) {
        if (open === 0 && idleSince < before && socket.bytesRead === read) socket.destroy()
      }
    })
  }
}
