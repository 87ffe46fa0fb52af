import type { AttemptRecord } from '../../core/call/index.ts'
import type { Line, Timeouts } from '../../core/catalog/index.ts'
import type { LineState } from '../lines/line-state.ts'
import { unwatch, type Watched, watch } from './clock-watch.ts'
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

const UNENDED: ExchangeEnd = { kind: 'abandoned' }
const MAY_LACK_ENDPOINT = '(the line has no such endpoint? list its "endpoints")'

/**
 * One exchange with one line, under four clocks, and the record of it. The clocks are connect, first byte, idle between
 * chunks, and total; progress is a note of the time, so that a chunk costs nothing. An exchange ends exactly once; what
 * the connection does afterwards changes nothing. How the bytes travel is for the classes that extend it.
 */
export abstract class Exchange<End extends ExchangeEnd> implements Watched {
  readonly target: ExchangeTarget
  /** Its place among all exchanges that run. */
  place = -1
  readonly #timeouts: Timeouts
  readonly #totalEnd: number
  #phase: 'connect' | 'first_byte' | 'idle' = 'connect'
  #phaseStart: number
  #paused = false
  readonly startedAt = performance.now()
  readonly #begunAt = Date.now()
  /** The status of the answer; null before it came. */
  status: number | null = null
  /** Milliseconds from the start until the request went out on a connection. */
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

  /**
   * Starts the clocks.
   *
   * @param deadline when the call's attempts end altogether, on the monotonic clock.
   */
  constructor(target: ExchangeTarget, timeouts: Timeouts, deadline: number) {
    this.target = target
    this.#timeouts = timeouts
    this.#totalEnd = Math.min(this.startedAt + timeouts.totalMs, deadline)
    this.#phaseStart = this.startedAt
    if (target.state) target.state.inFlight++
    watch(this)
  }

  /** Resolves when it is over; never rejects. */
  ended(): Promise<End> {
    this.#ended ??= new Promise((resolve) => {
      if (this.end) resolve(this.end)
      else this.#resolve = resolve
    })
    return this.#ended
  }

  /** Ends it because nobody waits for it any more. */
  abstract abandon(): void

  /** Ends it by a failure. */
  protected abstract breakOff(failure: Failure): void

  /** Whether the line may have seen the request. */
  get connected(): boolean {
    return this.connectMs !== null
  }

  /** The request goes out on a connection. */
  protected noteConnected(): void {
    const now = performance.now()
    this.connectMs ??= now - this.startedAt
    this.#phase = 'first_byte'
    this.#phaseStart = now
  }

  /** The request goes out once more, on a connection that is yet to be made. */
  protected noteReconnecting(): void {
    this.#phase = 'connect'
    this.#phaseStart = performance.now()
  }

  /** Something of the answer came. */
  noteProgress(): void {
    const now = performance.now()
    this.firstByteMs ??= now - this.startedAt
    this.#phase = 'idle'
    this.#phaseStart = now
  }

  /** Stops all clocks but the total one: it is not the upstream that is waited for. */
  pauseClocks(): void {
    this.#paused = true
  }

  resumeClocks(): void {
    this.#paused = false
    this.#phaseStart = performance.now()
  }

  /** Stops the clocks for good. */
  protected stopClocks(): void {
    unwatch(this)
  }

  /** Ends it by the clock that has run out, if one has. */
  look(now: number): void {
    const { connectMs, firstByteMs, idleMs } = this.#timeouts
    const phase = this.#phase
    const phaseMs = phase === 'connect' ? connectMs : phase === 'first_byte' ? firstByteMs : idleMs
    // A caller who does not read is not the line's fault.
    if (now >= this.#totalEnd)
      this.breakOff({ ...timedOut('total', now - this.startedAt), blame: !this.#paused })
    else if (!this.#paused && now >= this.#phaseStart + phaseMs)
      this.breakOff(timedOut(phase, now - this.#phaseStart))
  }

  /** Notes the end. False where it has ended before. */
  protected conclude(end: End): boolean {
    if (this.end) return false
    this.end = end
    this.durationMs = performance.now() - this.startedAt
    unwatch(this)
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
    const end = this.end ?? UNENDED
    const failure = end.kind === 'served' ? undefined : end.failure
    return {
      line: line.id,
      protocol: line.protocol,
      provider: line.provider,
      startedAt: this.#begunAt,
      upstreamModel: upstreamModel === '' ? null : upstreamModel,
      upstreamStatus: this.status,
      outcome: end.kind === 'failed' ? end.failure.code : end.kind === 'served' ? 'completed' : 'abandoned',
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

function rounded(ms: number | null): number | null {
  return ms === null ? null : Math.round(ms)
}
