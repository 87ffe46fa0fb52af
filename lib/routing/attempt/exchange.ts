import type { AttemptOutcome, AttemptRecord, TimeoutPhase } from '../../core/call/index.ts'
import type { Line, Timeouts } from '../../core/catalog/index.ts'
import type { LineState } from '../lines/line-state.ts'
import { AttemptClocks, type ClockOwner } from './attempt-clocks.ts'
import { type Failure, timedOut } from './outcome.ts'
import { traceDetail } from './trace-detail.ts'

/** Where an exchange goes. */
export interface ExchangeTarget {
  readonly line: Line
  /** Empty, or null, where the request names none. */
  readonly upstreamModel: string | null
  /** Undefined where what is fetched says nothing about the line's load. */
  readonly state?: LineState
}

/** An exchange that came to nothing, or whose answer broke off. */
export interface FailedEnd {
  readonly kind: 'failed'
  readonly failure: Failure
  /** Whether it cannot be undone any more: the caller has output, or the line may have done what it was asked. */
  readonly committed: boolean
  /** Whether another line may be tried. */
  readonly elsewhere: boolean
  /** Whether it counts among the line's failures. */
  readonly lineFault: boolean
}

/** How an exchange ended: with what was asked for, because nobody waits for it any more, or by a failure. */
export type ExchangeEnd =
  | { readonly kind: 'served' }
  | { readonly kind: 'abandoned'; readonly failure?: Failure | undefined }
  | FailedEnd

const MAY_LACK_ENDPOINT = '(the line has no such endpoint? list its "endpoints")'

/**
 * One exchange with one line, under its clocks, and the record of it. It ends exactly once; what the connection does
 * afterwards changes nothing. How the bytes travel is for the classes that extend it.
 */
export abstract class Exchange<End extends ExchangeEnd> implements ClockOwner {
  readonly target: ExchangeTarget
  readonly clocks: AttemptClocks
  readonly startedAt = performance.now()
  readonly #begunAt = Date.now()
  /** The status of the answer; null before it came. */
  status: number | null = null
  connectMs: number | null = null
  /** Milliseconds from the start to the first byte of the answer. */
  firstByteMs: number | null = null
  durationMs = 0
  /** Parts of a translated answer that were left out. */
  skipped = 0
  /** The body that was sent, in which quotations are looked for. */
  protected sent: Buffer | null = null
  /** How it ended; undefined while it runs. */
  end: End | undefined
  #ended: Promise<End> | undefined
  #resolve: ((end: End) => void) | undefined

  /** @param deadline when the call's attempts end altogether, on the monotonic clock. */
  constructor(target: ExchangeTarget, timeouts: Timeouts, deadline: number) {
    this.target = target
    const totalEnd = Math.min(this.startedAt + timeouts.totalMs, deadline)
    this.clocks = new AttemptClocks(this, timeouts, this.startedAt, totalEnd)
    if (target.state) target.state.inFlight++
  }

  /** Resolves when it is over; never rejects. */
  ended(): Promise<End> {
    this.#ended ??= new Promise((resolve) => {
      if (this.end) resolve(this.end)
      else this.#resolve = resolve
    })
    return this.#ended
  }

  /** Whether the line may have seen the request. */
  get connected(): boolean {
    return this.connectMs !== null
  }

  timedOut(phase: TimeoutPhase, afterMs: number): void {
    // A caller who does not read is not the line's fault.
    this.breakOff({ ...timedOut(phase, afterMs), blame: !this.clocks.paused })
  }

  /** Ends it because nobody waits for it any more. */
  abstract abandon(): void

  /** Ends it by a failure. */
  protected abstract breakOff(failure: Failure): void

  protected noteConnected(): void {
    const now = performance.now()
    this.connectMs ??= now - this.startedAt
    this.clocks.connected(now)
  }

  /** Something of the answer came. */
  progress(): void {
    const now = performance.now()
    this.firstByteMs ??= now - this.startedAt
    this.clocks.progress(now)
  }

  /** Notes the end. False where it has ended before. */
  protected conclude(end: End): boolean {
    if (this.end) return false
    this.end = end
    this.durationMs = performance.now() - this.startedAt
    this.clocks.stop()
    const { state } = this.target
    if (state) {
      state.inFlight--
      if (end.kind !== 'abandoned') state.recent.count(1, end.kind === 'failed' && end.lineFault ? 1 : 0)
    }
    this.#resolve?.(end)
    return true
  }

  /** What the trace keeps of it. */
  get record(): AttemptRecord {
    const { line, upstreamModel } = this.target
    const failure = this.end && this.end.kind !== 'served' ? this.end.failure : undefined
    return {
      line: line.id,
      protocol: line.protocol,
      provider: line.provider,
      startedAt: this.#begunAt,
      upstreamModel: upstreamModel === '' ? null : upstreamModel,
      upstreamStatus: this.status,
      outcome: outcomeOf(this.end),
      timeoutPhase: failure?.timeoutPhase ?? null,
      detail: failure?.detail ? this.#detailOf(failure.detail, failure.unknownPath) : null,
      connectMs: rounded(this.connectMs),
      firstByteMs: rounded(this.firstByteMs),
      durationMs: Math.round(this.durationMs),
      skipped: this.skipped,
    }
  }

  #detailOf(detail: string, unknownPath = false): string {
    const { line } = this.target
    const told = traceDetail(detail, line, this.sent)
    return unknownPath && !line.endpoints ? `${told} ${MAY_LACK_ENDPOINT}` : told
  }
}

function outcomeOf(end: ExchangeEnd | undefined): AttemptOutcome {
  if (!end || end.kind === 'abandoned') return 'abandoned'
  return end.kind === 'failed' ? end.failure.code : 'completed'
}

function rounded(ms: number | null): number | null {
  return ms === null ? null : Math.round(ms)
}
