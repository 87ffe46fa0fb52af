import type { Socket } from 'node:net'
import { type buildConnector, Client, type Dispatcher } from 'undici'

export { buildConnector, Pool } from 'undici'

/** The beginning of the head of an interim answer. */
const INTERIM = 'HTTP/1.1 1'
/** The first digit of the status in the bytes of a head. */
const STATUS_AT = INTERIM.length - 1
const SUCCESS = 0x32
/** A longer interim head is left to undici, which takes it for broken. */
const MAX_INTERIM_BYTES = 64 * 1024

/** A handler that the pool gives the connection that serves it. */
export interface ConnectionAware extends Dispatcher.DispatchHandler {
  connection: UpstreamConnection | undefined
  /** @param controller null if nothing was sent. */
  onResponseError(controller: Dispatcher.DispatchController | null, error: Error): void
}

/** A client of undici that watches its connection, for the exchange that it carries. */
export class UpstreamConnection extends Client {
  readonly #current: { socket: WatchedSocket | undefined }

  constructor(origin: string, options: Client.Options, connect: buildConnector.connector) {
    const current: { socket: WatchedSocket | undefined } = { socket: undefined }
    super(origin, {
      ...options,
      connect: (target, done) => {
        current.socket = undefined
        connect(target, (...[error, socket]: Parameters<buildConnector.Callback>) => {
          if (error) return done(error, null)
          current.socket = new WatchedSocket(socket as Socket)
          done(null, socket as Socket)
        })
      },
    })
    this.#current = current
  }

  override dispatch(options: Dispatcher.DispatchOptions, handler: Dispatcher.DispatchHandler): boolean {
    ;(handler as ConnectionAware).connection = this
    return super.dispatch(options, handler)
  }

  /** Notes that a request goes out. */
  begin(): void {
    this.#current.socket?.begin()
  }

  /** Notes that undici has written the request. */
  noteWritten(): void {
    this.#current.socket?.noteWritten()
  }

  /** Whether the system has taken the last byte of the request. */
  get hasSent(): boolean {
    return this.#current.socket?.hasSent ?? false
  }

  /** How many requests have gone out on the connection. */
  get requests(): number {
    return this.#current.socket?.requests ?? 0
  }

  /** Whether anything has come since the request went out. */
  get hasReceived(): boolean {
    return this.#current.socket?.hasReceived ?? false
  }

  /** Closes the connection if a part of the request has not left: the next request would wait behind it. */
  closeUnsent(): void {
    this.#current.socket?.closeUnsent()
  }
}

/**
 * Watches a socket that undici writes to and reads from. It takes interim answers (1xx) away, at one of which, an unasked
 * 100, undici would close the connection. Its listener runs before that of undici, which is added later.
 */
class WatchedSocket {
  hasSent = true
  hasReceived = false
  requests = 0
  readonly #socket: Socket
  /** Whether the next bytes belong to the head of an answer, or of an interim one. */
  #atHead = false
  /** The beginning of a head, as long as it is unknown whether it is interim. */
  #head: Buffer | undefined

  constructor(socket: Socket) {
    this.#socket = socket
    socket.on('readable', () => {
      if (this.#atHead) this.#readHead()
    })
  }

  begin(): void {
    this.requests++
    this.hasSent = false
    this.hasReceived = false
    this.#atHead = true
    this.#head = undefined
  }

  /** Notes when the system has taken the last byte of a request; mostly, it has taken all at once. */
  noteWritten(): void {
    const request = this.requests
    if (this.#socket.writableLength === 0) this.hasSent = !this.#socket.errored
    else
      this.#socket.write('', (error) => {
        if (!error && request === this.requests) this.hasSent = true
      })
  }

  closeUnsent(): void {
    if (!this.hasSent) this.#socket.destroy()
  }

  #readHead(): void {
    const chunk = this.#socket.read() as Buffer | null
    if (chunk === null) return
    this.hasReceived = true
    // Nearly every answer begins as one that is no interim one.
    this.#atHead = this.#head !== undefined || chunk[STATUS_AT] !== SUCCESS
    const rest = this.#atHead ? this.#withoutInterim(chunk) : chunk
    if (rest) this.#socket.unshift(rest)
  }

  /** Takes interim answers away. Returns undefined while it is unknown what the bytes are. */
  #withoutInterim(chunk: Buffer): Buffer | undefined {
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
        return undefined
      }
      rest = rest.subarray(end + 4)
    }
    return undefined
  }
}

/** Whether an answer begins as an interim one, or may, as far as it has come. 101 is no interim answer. */
function isInterim(start: string): boolean {
  if (start.length < 12) return start.startsWith(INTERIM.slice(0, start.length)) || start.startsWith(INTERIM)
  return start.startsWith(INTERIM) && !start.endsWith('01')
}
