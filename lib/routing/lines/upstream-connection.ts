import type { Socket } from 'node:net'
import { type buildConnector, Client, type Dispatcher } from 'undici'

export { buildConnector, Pool } from 'undici'

/** A kept-alive connection that closes this soon after the last byte of a request was dead before. */
const DEAD_AT_ONCE_MS = 100
/** The begin of the head of an interim answer. */
const INTERIM = 'HTTP/1.1 1'
/** The first digit of the status in the bytes of a head. */
const STATUS_AT = INTERIM.length - 1
const SUCCESS = 0x32
/** A longer interim head is left to undici, which takes it for broken. */
const MAX_INTERIM_BYTES = 64 * 1024

/** What an exchange knows of the connection that carries it. */
export interface WatchedConnection {
  /** Notes that a request goes out. Returns whether the connection has carried one before. */
  begin(bodyBytes: number): boolean
  /** Whether a connection that closed now was dead before the request: it has said nothing, and closed at once. */
  readonly wasDead: boolean
  /** Closes the connection if a part of the request has not left: the next request would wait behind it. */
  closeUnsent(): void
}

/** A handler that the pool gives the connection that serves it. */
export interface ConnectionAware extends Dispatcher.DispatchHandler {
  connection: WatchedConnection | undefined
  /** @param controller null if nothing was sent. */
  onResponseError(controller: Dispatcher.DispatchController | null, error: Error): void
}

/** A connection that counts its requests, and takes interim answers (1xx) out of what it reads. */
export class UpstreamConnection extends Client implements WatchedConnection {
  #carried = 0
  #socket: Socket | undefined
  /** When the last byte of the request was written; Infinity before that. */
  #sentAt = 0
  #heard = false
  #atHead = false
  #head: Buffer | undefined

  constructor(origin: string, options: Client.Options, connect: buildConnector.connector) {
    const watched: { by?: UpstreamConnection } = {}
    super(origin, {
      ...options,
      connect: (target, done) =>
        connect(target, (...[error, socket]: Parameters<buildConnector.Callback>) => {
          if (error) return done(error, null)
          if (watched.by) watched.by.#watch(socket as Socket)
          done(null, socket as Socket)
        }),
    })
    watched.by = this
  }

  override dispatch(options: Dispatcher.DispatchOptions, handler: Dispatcher.DispatchHandler): boolean {
    ;(handler as ConnectionAware).connection = this
    return super.dispatch(options, handler)
  }

  begin(bodyBytes: number): boolean {
    this.#heard = false
    this.#atHead = true
    this.#head = undefined
    // A longer body is written in parts. The socket says when the last one has left.
    const isLong = bodyBytes >= (this.#socket?.writableHighWaterMark ?? 0)
    this.#sentAt = isLong ? Infinity : performance.now()
    return this.#carried++ > 0
  }

  get wasDead(): boolean {
    return !this.#heard && performance.now() - this.#sentAt <= DEAD_AT_ONCE_MS
  }

  closeUnsent(): void {
    if (this.#socket && this.#socket.writableLength > 0) this.#socket.destroy()
  }

  #watch(socket: Socket): void {
    this.#carried = 0
    this.#socket = socket
    const read = socket.read.bind(socket)
    socket.read = (size?: number): Buffer | null => {
      const chunk: Buffer | null = read(size)
      if (!chunk || !this.#atHead) return chunk
      this.#heard = true
      // Nearly every answer begins as one that is no interim one.
      this.#atHead = this.#head !== undefined || chunk[STATUS_AT] !== SUCCESS
      return this.#atHead ? this.#withoutInterim(chunk) : chunk
    }
    socket.on('drain', () => {
      if (this.#sentAt === Infinity) this.#sentAt = performance.now()
    })
  }

  /**
   * Takes interim answers away: undici closes a connection that says 100 unasked. Returns null while it is unknown what
   * the bytes are.
   */
  #withoutInterim(chunk: Buffer): Buffer | null {
    let rest = this.#head ? Buffer.concat([this.#head, chunk]) : chunk
    this.#head = undefined
    while (rest.length > 0) {
      const start = rest.toString('latin1', 0, 12)
      const end = isInterim(start) ? rest.indexOf('\r\n\r\n') : undefined
      if (end === undefined || rest.length > MAX_INTERIM_BYTES) {
        this.#atHead = false
        return rest
      }
      if (end < 0) {
        this.#head = rest
        return null
      }
      rest = rest.subarray(end + 4)
    }
    return null
  }
}

/** Whether an answer begins as an interim one, or may, as far as it has come. 101 is no interim answer. */
function isInterim(start: string): boolean {
  if (start.length < 12) return start.startsWith(INTERIM.slice(0, start.length)) || start.startsWith(INTERIM)
  return start.startsWith(INTERIM) && !start.endsWith('01')
}
