import type { IncomingHttpHeaders } from 'node:http'
import type { Dispatcher } from 'undici'
import type { AttemptOutcome, AttemptRecord, CallRequest } from '../../../core/call/index.ts'
import type { StreamReader } from '../../../core/operations/index.ts'
import { AttemptClocks } from '../../../routing/attempt/attempt-clocks.ts'
import { connectionFailure, type Failure, timedOut } from '../../../routing/attempt/outcome.ts'
import type { SpokenRequest } from '../../../routing/attempt/spoken-request.ts'
import { traceDetail } from '../../../routing/attempt/trace-detail.ts'
import type { UpstreamRequest } from '../../../routing/attempt/upstream-request.ts'
import type { Candidate } from '../../../routing/candidates/candidate.ts'
import type { ConnectionAware, CountingConnection } from '../../../routing/lines/upstream-pool.ts'
import type { RelaySink } from '../relay/stream-relay.ts'
import { AnswerIntake, type IntakeEnd } from './answer-intake.ts'

/** How an attempt ended: as its response did, or because the caller left. */
export type AttemptEnd = IntakeEnd | { readonly kind: 'abandoned'; readonly reader: StreamReader | undefined }

/** How long a connection may take to end its response after the answer is whole, to be used again. */
const LINGER_MS = 1000
const MAY_LACK_ENDPOINT = '(the line has no such endpoint? list its "endpoints")'
const CALLER_LEFT = new Error('the caller left')
const OVER = new Error('the attempt is over')

/**
 * One exchange with one line under four clocks. It ends exactly once; what the connection does afterwards changes
 * nothing.
 */
export class Attempt implements ConnectionAware {
  readonly candidate: Candidate
  /** Set by the pool. */
  connection: CountingConnection | undefined
  readonly #upstream: UpstreamRequest
  readonly #intake: AnswerIntake
  readonly #clocks: AttemptClocks
  readonly #startedAt = performance.now()
  readonly #begunAt = Date.now()
  #onEnd: (end: AttemptEnd) => void = () => {}
  #over = false
  #triedFresh = false
  #onReusedConnection = false
  #controller: Dispatcher.DispatchController | undefined
  #connectMs: number | null = null
  #firstByteMs: number | null = null
  #durationMs = 0
  #end: AttemptEnd | undefined

  /**
   * @param deadline when the call's attempts end altogether, on the monotonic clock.
   * @param sink where a stream's bytes go.
   */
  constructor(
    candidate: Candidate,
    request: CallRequest,
    spoken: SpokenRequest,
    upstream: UpstreamRequest,
    deadline: number,
    sink: RelaySink,
  ) {
    this.candidate = candidate
    this.#upstream = upstream
    this.#intake = new AnswerIntake(request, spoken, candidate.price, sink)
    this.#clocks = new AttemptClocks(candidate.line.timeouts, this.#startedAt, deadline, (phase, afterMs) => {
      // A caller who does not read is not the line's fault.
      const failure = { ...timedOut(phase, afterMs), blame: !this.#clocks.paused }
      this.#conclude(this.#intake.breakOff(failure), OVER)
    })
  }

  /** Sends the request. Resolves once, never rejects. */
  run(): Promise<AttemptEnd> {
    return new Promise((resolve) => {
      this.#onEnd = resolve
      this.#clocks.start()
      this.candidate.state.inFlight++
      this.candidate.state.pool.dispatch(this.#options, this)
    })
  }

  /** Stops reading while the caller is slower than the upstream. */
  pause(): void {
    this.#controller?.pause()
    this.#clocks.pause()
  }

  resume(): void {
    this.#clocks.resume()
    this.#controller?.resume()
  }

  /** Ends it because the caller left. */
  abandon(): void {
    if (this.#over) return
    const end = this.#intake.flush()
    this.#conclude(end ?? { kind: 'abandoned', reader: this.#intake.reader }, CALLER_LEFT)
  }

  /** The stream's reader, once there is a stream. */
  get reader(): StreamReader | undefined {
    return this.#intake.reader
  }

  /** Milliseconds from sending to the first byte of the answer's body. */
  get firstByteMs(): number | null {
    return this.#firstByteMs
  }

  get durationMs(): number {
    return this.#durationMs
  }

  /** What the trace keeps of it. */
  get record(): AttemptRecord {
    const failure = this.#end?.kind === 'failed' ? this.#end.failure : undefined
    return {
      line: this.candidate.line.id,
      protocol: this.candidate.line.protocol,
      provider: this.candidate.line.provider,
      startedAt: this.#begunAt,
      upstreamModel: this.candidate.upstreamModel,
      upstreamStatus: this.#intake.status,
      outcome: outcomeOf(this.#end),
      timeoutPhase: failure?.timeoutPhase ?? null,
      detail: failure ? this.#detailOf(failure) : null,
      connectMs: rounded(this.#connectMs),
      firstByteMs: rounded(this.#firstByteMs),
      durationMs: Math.round(this.#durationMs),
      skipped: this.#intake.skipped,
    }
  }

  #detailOf({ detail, unknownPath }: Failure): string | null {
    const { line } = this.candidate
    if (!detail) return null
    const told = traceDetail(detail, line, this.#upstream.body)
    return unknownPath && !line.endpoints ? `${told} ${MAY_LACK_ENDPOINT}` : told
  }

  get #options(): Dispatcher.DispatchOptions {
    return { ...this.#upstream, idempotent: false }
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    if (this.#over) {
      controller.abort(OVER)
      return
    }
    this.#controller = controller
    if (this.connection) this.#onReusedConnection = this.connection.carried++ > 0
    this.#connectMs ??= performance.now() - this.#startedAt
    this.#clocks.connected()
  }

  onResponseStart(
    _controller: Dispatcher.DispatchController,
    status: number,
    headers: IncomingHttpHeaders,
  ): void {
    // 1xx are not the answer.
    if (this.#over || status < 200) return
    const end = this.#intake.start(status, headers)
    if (end) this.#conclude(end, OVER)
  }

  onResponseData(_controller: Dispatcher.DispatchController, chunk: Buffer): void {
    if (this.#over) return
    const now = performance.now()
    this.#firstByteMs ??= now - this.#startedAt
    this.#clocks.progress(now)
    if (this.#intake.push(chunk)) queueMicrotask(() => this.#flush())
  }

  onResponseEnd(): void {
    this.#clocks.responseEnded()
    if (!this.#over) this.#conclude(this.#intake.end())
  }

  onResponseError(_controller: Dispatcher.DispatchController | null, error: Error): void {
    this.#clocks.responseEnded()
    if (this.#over) return
    if (this.#mayTryFresh()) {
      this.#triedFresh = true
      this.#controller = undefined
      this.#clocks.reconnecting()
      this.candidate.state.pool.dispatchFresh(this.#options, this)
      return
    }
    this.#conclude(this.#intake.breakOff(connectionFailure(error)))
  }

  /** A kept-alive connection that dies before a single byte of an answer was closed by the other side meanwhile. */
  #mayTryFresh(): boolean {
    return (
      this.#onReusedConnection &&
      !this.#triedFresh &&
      this.#intake.status === null &&
      this.#controller !== undefined
    )
  }

  #flush(): void {
    if (this.#over) return
    const end = this.#intake.flush()
    if (end) this.#conclude(end, end.kind === 'streamed' ? undefined : OVER)
  }

  /** @param cut why the connection is cut; without it the response may end by itself, so that it can be used again. */
  #conclude(end: AttemptEnd, cut?: Error): void {
    if (this.#over) return
    this.#over = true
    this.#end = end
    this.#durationMs = performance.now() - this.#startedAt
    this.candidate.state.inFlight--
    if (end.kind !== 'abandoned')
      this.candidate.state.recent.count(end.kind === 'failed' && isLinesDoing(end))
    const controller = this.#controller
    if (cut) {
      this.#clocks.stop()
      controller?.abort(cut)
    } else {
      if (controller?.paused) controller.resume()
      this.#clocks.linger(LINGER_MS, () => controller?.abort(OVER))
    }
    this.#onEnd(end)
  }
}

/** Whether a failure says something about the line, and not only about the request or its caller. */
function isLinesDoing({ failure, committed }: Extract<AttemptEnd, { kind: 'failed' }>): boolean {
  return failure.blame || (failure.retryable && !committed)
}

function outcomeOf(end: AttemptEnd | undefined): AttemptOutcome {
  if (end === undefined || end.kind === 'abandoned') return 'abandoned'
  return end.kind === 'failed' ? end.failure.code : 'completed'
}

function rounded(ms: number | null): number | null {
  return ms === null ? null : Math.round(ms)
}
