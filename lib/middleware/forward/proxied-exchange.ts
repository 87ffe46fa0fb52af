import type { ClientRequest, IncomingMessage } from 'node:http'
import { type Duplex, PassThrough } from 'node:stream'
import { TLSSocket } from 'node:tls'
import { Exchange, type ExchangeEnd } from '../../routing/attempt/exchange.ts'
import { connectionFailure, type Failure } from '../../routing/attempt/outcome.ts'
import type { Candidate } from '../../routing/candidates/candidate.ts'
import { hasBody } from './relay-headers.ts'
import { readError } from './relayed-answer.ts'
import { SpentPieces, SpentReads } from './spent-pieces.ts'
import { sendUpstream, type UpstreamEvents, type UpstreamTarget, upgradeUpstream } from './upstream-proxy.ts'

/** What came back first. */
export type Opening =
  | { readonly kind: 'answered'; readonly response: IncomingMessage }
  /** An answer to a handshake; the body is what it says of its error. */
  | { readonly kind: 'refused'; readonly response: IncomingMessage; readonly body: Promise<unknown> }
  | { readonly kind: 'switched'; readonly response: IncomingMessage; readonly socket: Duplex }
  /** Nothing: the exchange has ended. */
  | { readonly kind: 'ended' }

/**
 * One exchange with one line whose bodies are passed on unread, each as fast as the slower side goes. It runs under the
 * line's clocks for connecting, the first byte and silence, but not under the total one: how long it takes is decided
 * by how much there is. Silence counts only while it is the line that is waited for.
 */
export class ProxiedExchange extends Exchange<ExchangeEnd> implements UpstreamEvents {
  readonly #caller: IncomingMessage
  readonly #body = new PassThrough()
  readonly #sent = new SpentPieces(
    () => this.#body.writableLength + this.#body.readableLength + (this.#request?.writableLength ?? 0),
  )
  readonly #reads = new SpentReads()
  readonly #opening = Promise.withResolvers<Opening>()
  /** Whether its end is told by whoever passes it on: the caller has a head, or gets words of our own. */
  committed = false
  #request: ClientRequest | undefined

  constructor(candidate: Candidate, caller: IncomingMessage) {
    super(
      candidate,
      { ...candidate.line.timeouts, totalMs: Number.POSITIVE_INFINITY },
      Number.POSITIVE_INFINITY,
    )
    this.#caller = caller
  }

  /** Sends the request. Resolves once, never rejects. */
  send(target: UpstreamTarget): Promise<Opening> {
    sendUpstream(this.#caller, target, this, this.#body)
    return this.#opening.promise
  }

  /** Sends a WebSocket's handshake. Resolves once, never rejects. */
  upgrade(target: UpstreamTarget): Promise<Opening> {
    upgradeUpstream(this.#caller, target, this)
    return this.#opening.promise
  }

  /** Takes note of a piece of the answer's body. */
  received(piece: Buffer): void {
    this.#reads.compare(piece)
    this.noteProgress()
  }

  /** Ends it: everything was passed on. */
  complete(): void {
    this.conclude({ kind: 'served' })
  }

  /** Ends it because the caller left. */
  abandon(): void {
    this.conclude({ kind: 'abandoned' })
  }

  /** Ends it by a failure. Another line may be tried as long as nothing of the body has been read. */
  breakOff(failure: Failure): void {
    const { committed } = this
    const elsewhere = !committed && !this.connected
    this.conclude({ kind: 'failed', failure, committed, elsewhere, lineFault: failure.blame })
  }

  protected override conclude(end: ExchangeEnd): boolean {
    if (!super.conclude(end)) return false
    this.#stopUpload()
    this.#request?.destroy()
    this.#opening.resolve({ kind: 'ended' })
    return true
  }

  requested(request: ClientRequest): void {
    this.#request = request
    if (this.end) request.destroy()
    else if (request.socket) this.#watchConnecting(request)
    else request.once('socket', () => this.#watchConnecting(request))
  }

  answered(response: IncomingMessage): void {
    if (this.#noteAnswer(response)) this.#opening.resolve({ kind: 'answered', response })
  }

  refused(response: IncomingMessage): void {
    if (!this.#noteAnswer(response)) return
    this.#opening.resolve({ kind: 'refused', response, body: readError(this, response) })
  }

  switched(response: IncomingMessage, socket: Duplex): void {
    socket.on('error', () => {})
    if (this.end) {
      socket.destroy()
      return
    }
    this.status = 101
    this.noteProgress()
    // A session may be silent for as long as its two sides like.
    this.stopClocks()
    this.#opening.resolve({ kind: 'switched', response, socket })
  }

  failed(error: Error): void {
    this.breakOff(connectionFailure(error))
  }

  /** False where nobody waits for it any more. */
  #noteAnswer(response: IncomingMessage): boolean {
    // Told by the request as well, and heard there; here it would be an error that nobody hears.
    response.on('error', () => {})
    if (this.end) return false
    this.status = response.statusCode ?? 0
    this.resumeClocks()
    this.noteProgress()
    response.on('close', () => {
      if (!response.complete) this.failed(new Error('the answer broke off'))
    })
    return true
  }

  #watchConnecting(request: ClientRequest): void {
    const { socket } = request
    if (socket) this.#reads.watch(socket)
    if (socket?.connecting) {
      socket.once(socket instanceof TLSSocket ? 'secureConnect' : 'connect', () => this.#connected())
    } else this.#connected()
  }

  #connected(): void {
    if (this.end) return
    this.noteConnected()
    this.#upload()
  }

  /** Only now, so that a connection that cannot be made leaves the body for another line. */
  #upload(): void {
    if (!hasBody(this.#caller)) {
      this.#body.end()
      return
    }
    this.#waitFor('caller')
    this.#request?.on('drain', () => this.#sent.freeWritten())
    this.#caller.on('data', this.#onPiece).on('end', this.#onLastPiece)
    this.#body.on('drain', () => {
      if (this.end) return
      this.#waitFor('caller')
      this.#caller.resume()
    })
  }

  readonly #onPiece = (piece: Buffer): void => {
    this.#sent.add(piece)
    if (this.#body.write(piece)) return
    this.#caller.pause()
    this.#waitFor('line')
  }

  readonly #onLastPiece = (): void => {
    this.#body.end()
    this.#waitFor('line')
  }

  /** Whose silence it would be now. An answer that has begun is timed by itself, whatever is still sent. */
  #waitFor(side: 'caller' | 'line'): void {
    if (this.status !== null) return
    if (side === 'caller') this.pauseClocks()
    else this.resumeClocks()
  }

  #stopUpload(): void {
    this.#caller.off('data', this.#onPiece).off('end', this.#onLastPiece)
    this.#body.destroy()
  }
}
