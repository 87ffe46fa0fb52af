import type { Socket } from 'node:net'
import { Duplex } from 'node:stream'
import { type buildConnector, Client, type Dispatcher } from 'undici'

export { buildConnector, Pool } from 'undici'

/** The begin of the head of an interim answer. */
const INTERIM = 'HTTP/1.1 1'
/** The first digit of the status in the bytes of a head. */
const STATUS_AT = INTERIM.length - 1
const SUCCESS = 0x32
/** A longer interim head is left to undici, which takes it for broken. */
const MAX_INTERIM_BYTES = 64 * 1024

/** The connection that carries an exchange, as the exchange sees it. */
export interface WatchedConnection {
  /** Notes that a request goes out. */
  begin(): void
  /** Whether the system has taken the last byte of the request. */
  readonly hasSent: boolean
  /** How many requests have gone out on it. */
  readonly requests: number
  /** Whether anything has come since the request went out. */
  readonly hasHeard: boolean
  /** Closes the connection if a part of the request has not left: the next request would wait behind it. */
  closeUnsent(): void
}

/** A handler that the pool gives the connection that serves it. */
export interface ConnectionAware extends Dispatcher.DispatchHandler {
  connection: WatchedConnection | undefined
  /** @param controller null if nothing was sent. */
  onResponseError(controller: Dispatcher.DispatchController | null, error: Error): void
}

/** A client of undici that watches its connection. */
export class UpstreamConnection extends Client implements WatchedConnection {
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
          // undici reads and writes it as any other stream.
          done(null, current.socket.stream as Duplex as Socket)
        })
      },
    })
    this.#current = current
  }

  override dispatch(options: Dispatcher.DispatchOptions, handler: Dispatcher.DispatchHandler): boolean {
    ;(handler as ConnectionAware).connection = this
    return super.dispatch(options, handler)
  }

  begin(): void {
    this.#current.socket?.begin()
  }

  get hasSent(): boolean {
    return this.#current.socket?.hasSent ?? false
  }

  get requests(): number {
    return this.#current.socket?.requests ?? 0
  }

  get hasHeard(): boolean {
    return this.#current.socket?.hasHeard ?? false
  }

  closeUnsent(): void {
    const { socket } = this.#current
    if (socket && !socket.hasSent) socket.stream.destroy()
  }
}

/**
 * A connection, and the stream that undici has in its place. The stream passes everything on but interim answers (1xx), at
 * one of which, an unasked 100, undici would close the connection.
 */
class WatchedSocket {
  readonly stream: Duplex
  hasSent = true
  hasHeard = false
  requests = 0
  /** Whether the next bytes belong to the head of an answer, or of an interim one. */
  #atHead = false
  #head: Buffer | undefined

  constructor(socket: Socket) {
    const stream = new SocketStream(socket, () => {
      this.hasSent = true
    })
    let hasEnded = false
    socket
      .on('data', (chunk: Buffer) => {
        const rest = this.#hear(chunk)
        if (rest && !stream.push(rest)) socket.pause()
      })
      .on('end', () => {
        hasEnded = true
        stream.push(null)
      })
      .on('error', (error) => stream.destroy(error))
      // After a regular end, the stream may have bytes that nobody has read yet.
      .on('close', () => hasEnded || stream.destroy())
    this.stream = stream
  }

  begin(): void {
    this.requests++
    this.hasSent = false
    this.hasHeard = false
    this.#atHead = true
    this.#head = undefined
  }

  #hear(chunk: Buffer): Buffer | undefined {
    this.hasHeard = true
    if (!this.#atHead) return chunk
    // Nearly every answer begins as one that is no interim one.
    this.#atHead = this.#head !== undefined || chunk[STATUS_AT] !== SUCCESS
    return this.#atHead ? this.#withoutInterim(chunk) : chunk
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

/** A stream whose other end is a socket. Its readable side is filled by its owner. */
class SocketStream extends Duplex {
  readonly #socket: Socket

  /** @param onSent called when the socket has sent all that was written. */
  constructor(socket: Socket, onSent: () => void) {
    const written =
      (stream: Duplex, done: (error?: Error | null) => void) =>
      (error?: Error | null): void => {
        done(error)
        if (!error && stream.writableLength === 0) onSent()
      }
    super({
      allowHalfOpen: false,
      decodeStrings: false,
      read: () => void socket.resume(),
      write(chunk, encoding, done) {
        socket.write(chunk, encoding, written(this, done))
      },
      writev(chunks, done) {
        socket.cork()
        for (const [i, { chunk, encoding }] of chunks.entries())
          socket.write(chunk, encoding, i === chunks.length - 1 ? written(this, done) : undefined)
        socket.uncork()
      },
      final: (done) => void socket.end(done),
      destroy: (error, done) => {
        if (socket.closed) done(error)
        else socket.once('close', () => done(error)).destroy()
      },
    })
    this.#socket = socket
  }

  /** Undici lets a process end while its connections are idle. */
  ref(): void {
    this.#socket.ref()
  }

  unref(): void {
    this.#socket.unref()
  }
}

/** Whether an answer begins as an interim one, or may, as far as it has come. 101 is no interim answer. */
function isInterim(start: string): boolean {
  if (start.length < 12) return start.startsWith(INTERIM.slice(0, start.length)) || start.startsWith(INTERIM)
  return start.startsWith(INTERIM) && !start.endsWith('01')
}
