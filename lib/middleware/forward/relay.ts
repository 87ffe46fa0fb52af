import type { ClientRequest, IncomingMessage } from 'node:http'
import { type Duplex, PassThrough } from 'node:stream'
import { TLSSocket } from 'node:tls'
import type { AttemptOutcome, AttemptRecord } from '../../core/call/index.ts'
import { AttemptClocks } from '../../routing/attempt/attempt-clocks.ts'
import { connectionFailure, type Failure, timedOut } from '../../routing/attempt/outcome.ts'
import { traceDetail } from '../../routing/attempt/trace-detail.ts'
import type { Candidate } from '../../routing/candidates/candidate.ts'
import { isLineFault } from '../../routing/lines/recent-attempts.ts'
import { hasBody } from './relay-headers.ts'
import { SpentPieces, SpentReads } from './spent-pieces.ts'
import { sendUpstream, type UpstreamEvents, type UpstreamTarget, upgradeUpstream } from './upstream-proxy.ts'

/** What came back first. */
export type Opening =
  | { readonly kind: 'answered'; readonly response: IncomingMessage }
  | {
      readonly kind: 'switched'
      readonly response: IncomingMessage
      readonly socket: Duplex
      readonly head: Buffer
    }
  | { readonly kind: 'failed'; readonly failure: Failure }
  | { readonly kind: 'abandoned' }

/** How a relay ended whose answer had begun. */
export type RelayEnd =
  | { readonly kind: 'completed' }
  | { readonly kind: 'failed'; readonly failure: Failure }
  | { readonly kind: 'abandoned' }

/**
 * One exchange with one line whose bodies are passed on unread, each as fast as the slower side goes. It runs under the
 * line's clocks for connecting, the first byte and silence, but not under the total one: how long it takes is decided
 * by how much there is. Silence counts only while it is the line that is waited for.
 */
export class Relay implements UpstreamEvents {
  readonly candidate: Candidate
  readonly clocks: AttemptClocks
  readonly #caller: IncomingMessage
  readonly #startedAt = performance.now()
  readonly #begunAt = Date.now()
  readonly #body = new PassThrough()
  readonly #sent = new SpentPieces(
    () => this.#body.writableLength + this.#body.readableLength + (this.#request?.writableLength ?? 0),
  )
  readonly #reads = new SpentReads()
  readonly #opening = Promise.withResolvers<Opening>()
  readonly #ending = Promise.withResolvers<RelayEnd>()
  #endUpstream: () => void = () => {}
  #request: ClientRequest | undefined
  #status: number | null = null
  #connectMs: number | null = null
  #firstByteMs: number | null = null
  #durationMs = 0
  #end: RelayEnd | undefined

  constructor(candidate: Candidate, caller: IncomingMessage) {
    this.candidate = candidate
    this.#caller = caller
    const timeouts = { ...candidate.line.timeouts, totalMs: Number.POSITIVE_INFINITY }
    this.clocks = new AttemptClocks(timeouts, this.#startedAt, Number.POSITIVE_INFINITY, (phase, afterMs) =>
      this.conclude({ kind: 'failed', failure: timedOut(phase, afterMs) }),
    )
  }

  /** Sends the request. Resolves once, never rejects. */
  send(target: UpstreamTarget): Promise<Opening> {
    this.#begin()
    this.#endUpstream = sendUpstream(this.#caller, target, this, this.#body)
    return this.#opening.promise
  }

  /** Sends a WebSocket's handshake. Resolves once, never rejects. */
  upgrade(target: UpstreamTarget): Promise<Opening> {
    this.#begin()
    this.#endUpstream = upgradeUpstream(this.#caller, target, this)
    return this.#opening.promise
  }

  /** Resolves when it is over, which may be before its answer is passed on. Never rejects. */
  get ended(): Promise<RelayEnd> {
    return this.#ending.promise
  }

  /** Whether a connection was made; until then nothing of the caller's body is read. */
  get connected(): boolean {
    return this.#connectMs !== null
  }

  /** Something of the answer came. */
  progress(piece?: Buffer): void {
    if (piece) this.#reads.compare(piece)
    const now = performance.now()
    this.#firstByteMs ??= now - this.#startedAt
    this.clocks.progress(now)
  }

  /** Ends it because the caller left. */
  abandon(): void {
    this.conclude({ kind: 'abandoned' })
  }

  /** Ends it, once; what is left of the exchange is cut. */
  conclude(end: RelayEnd): void {
    if (this.#end) return
    this.#end = end
    this.#durationMs = performance.now() - this.#startedAt
    this.candidate.state.inFlight--
    const failed = end.kind === 'failed' ? end.failure.blame : isLineFault(this.#status)
    if (end.kind !== 'abandoned') this.candidate.state.recent.count(failed)
    this.clocks.stop()
    this.#stopUpload()
    this.#endUpstream()
    this.#request?.destroy()
    if (end.kind !== 'completed') this.#opening.resolve(end)
    this.#ending.resolve(end)
  }

  /** What the trace keeps of it. */
  get record(): AttemptRecord {
    const failure = this.#end?.kind === 'failed' ? this.#end.failure : undefined
    const { line, upstreamModel } = this.candidate
    return {
      line: line.id,
      protocol: line.protocol,
      provider: line.provider,
      startedAt: this.#begunAt,
      upstreamModel: upstreamModel === '' ? null : upstreamModel,
      upstreamStatus: this.#status,
      outcome: outcomeOf(this.#end),
      timeoutPhase: failure?.timeoutPhase ?? null,
      detail: failure?.detail ? traceDetail(failure.detail, line, null) : null,
      connectMs: rounded(this.#connectMs),
      firstByteMs: rounded(this.#firstByteMs),
      durationMs: Math.round(this.#durationMs),
      skipped: 0,
    }
  }

  requested(request: ClientRequest): void {
    this.#request = request
    if (this.#end) request.destroy()
    else if (request.socket) this.#watchConnecting(request)
    else request.once('socket', () => this.#watchConnecting(request))
  }

  answered(response: IncomingMessage): void {
    // Told by the request as well, and heard there; here it would be an error that nobody hears.
    response.on('error', () => {})
    if (this.#end) return
    this.#status = response.statusCode ?? 0
    this.clocks.resume()
    this.progress()
    response.on('close', () => {
      if (!response.complete) this.failed(new Error('the answer broke off'))
    })
    this.#opening.resolve({ kind: 'answered', response })
  }

  switched(response: IncomingMessage, socket: Duplex, head: Buffer): void {
    socket.on('error', () => {})
    if (this.#end) {
      socket.destroy()
      return
    }
    this.#status = 101
    this.progress()
    // A session may be silent for as long as its two sides like.
    this.clocks.stop()
    this.#opening.resolve({ kind: 'switched', response, socket, head })
  }

  failed(error: Error): void {
    this.conclude({ kind: 'failed', failure: connectionFailure(error) })
  }

  #begin(): void {
    this.clocks.start()
    this.candidate.state.inFlight++
  }

  #watchConnecting(request: ClientRequest): void {
    const { socket } = request
    if (socket) this.#reads.watch(socket)
    if (socket?.connecting) {
      socket.once(socket instanceof TLSSocket ? 'secureConnect' : 'connect', () => this.#connected())
    } else this.#connected()
  }

  #connected(): void {
    if (this.#end) return
    this.#connectMs = performance.now() - this.#startedAt
    this.clocks.connected()
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
      if (this.#end) return
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
    if (this.#status !== null) return
    if (side === 'caller') this.clocks.pause()
    else this.clocks.resume()
  }

  #stopUpload(): void {
    this.#caller.off('data', this.#onPiece).off('end', this.#onLastPiece)
    this.#body.destroy()
  }
}

function outcomeOf(end: RelayEnd | undefined): AttemptOutcome {
  if (end === undefined || end.kind === 'abandoned') return 'abandoned'
  return end.kind === 'failed' ? end.failure.code : 'completed'
}

function rounded(ms: number | null): number | null {
  return ms === null ? null : Math.round(ms)
}
