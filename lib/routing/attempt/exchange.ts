// Named imports, so that fake timers in the tests of an app do not stop these clocks for good.
import { clearInterval, setImmediate, setInterval, setTimeout } from 'node:timers'
import type { AttemptError, AttemptRecord } from '../../core/call/index.ts'
import type { Line, Timeouts } from '../../core/catalog/index.ts'
import type { FinishReason } from '../../core/operations/index.ts'
import { STOOD_STILL_MS } from '../../core/timing/index.ts'
import type { LineState } from '../lines/line-state.ts'
import { type AttemptEnd, type Failure, timedOut } from './failure.ts'
import { redactPrompt, type SentBody } from './redact-prompt.ts'

export interface ExchangeTarget {
  readonly line: Line
  /** The line's name of the model; empty or null if the request names no model. */
  readonly upstreamModel: string | null
  /** The line's state; undefined if the exchange does not count towards the line's load. */
  readonly state?: LineState
}

/** Characters of a detail that the trace keeps. */
const MAX_DETAIL_LENGTH = 300
const RESENT = '(sent again over a fresh connection: the kept-alive one was dead)'

const CLOCKS = { connect: 'connectMs', first_byte: 'firstByteMs', idle: 'idleMs' } as const

const MAY_LACK_ENDPOINT = '(the line has no such endpoint? list its "endpoints")'

/** Facts for the record of an attempt that its exchange does not know. */
export interface RecordDetails {
  /** Parts of a translated answer that were left out. */
  readonly skipped?: number | undefined
  /** Members of a translated request that were left out. */
  readonly dropped?: readonly string[] | undefined
  /** Why the answer ended, if it is known. */
  readonly finishReason?: FinishReason | undefined
  /** The body that was sent, if an error may be compared with it. */
  readonly sent?: SentBody | undefined
}

/**
 * One exchange with one line, and its record for the trace. Four clocks limit it: connect, first byte, idle between
 * chunks, and total. Progress is only marked until the clocks are checked, so that a chunk costs nothing. Subclasses
 * implement the transport.
 */
export abstract class Exchange {
  readonly target: ExchangeTarget
  /** The index in the list of exchanges whose clocks run; -1 if they do not. */
  place = -1
  readonly #timeouts: Timeouts
  #totalEnd: number
  #phase: 'connect' | 'first_byte' | 'idle' = 'connect'
  #phaseStart: number
  #progressed = false
  #paused = false
  readonly startedAt = performance.now()
  readonly #begunAt = Date.now()
  /** The status of the answer; null before it came. */
  status: number | null = null
  /** Milliseconds from the start until the request went out on a connection. */
  connectMs: number | null = null
  /** Milliseconds from the start to the first byte of the answer. */
  firstByteMs: number | null = null
  #durationMs: number | undefined
  #isConcluded = false
  /** Whether the request was sent once more, because its kept-alive connection was dead. */
  protected resent = false

  /**
   * Starts the clocks.
   * @param deadline when all attempts of the call must have ended, on the monotonic clock.
   */
  constructor(target: ExchangeTarget, timeouts: Timeouts, deadline: number) {
    this.target = target
    this.#timeouts = timeouts
    this.#totalEnd = Math.min(this.startedAt + timeouts.totalMs, deadline)
    this.#phaseStart = this.startedAt
    if (target.state) target.state.inFlight++
    watch(this)
  }

  /** Ends the exchange because nobody waits for its answer. */
  abstract abandon(): void

  /** Ends the exchange because one of its clocks ran out. */
  protected abstract breakOff(failure: Failure): void

  /** Whether the line may have seen the request. */
  get connected(): boolean {
    return this.connectMs !== null
  }

  /** Whether the connection is being opened. */
  protected get connecting(): boolean {
    return this.#phase === 'connect'
  }

  /** Notes that the request goes out on a connection. */
  protected noteConnected(): void {
    this.#phaseStart = performance.now()
    this.connectMs ??= this.#phaseStart - this.startedAt
    this.#phase = 'first_byte'
  }

  /** Notes that the request goes out again, on a new connection. */
  protected noteReconnecting(): void {
    this.#phase = 'connect'
    this.#phaseStart = performance.now()
  }

  /** Notes that bytes of the answer arrived. */
  noteProgress(): void {
    this.#progressed = true
    this.firstByteMs ??= performance.now() - this.startedAt
    this.#phase = 'idle'
  }

  /** Stops all clocks but the total one, because the exchange does not wait for the upstream. */
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

  /** Milliseconds from the start to the end of the response; until now if it has not ended. */
  get durationMs(): number {
    return this.#durationMs ?? performance.now() - this.startedAt
  }

  /** Notes that nothing more comes of the response. */
  protected noteOver(): void {
    this.#durationMs ??= performance.now() - this.startedAt
    unwatch(this)
  }

  /**
   * Ends the exchange if one of its clocks has run out.
   *
   * @param now the time of the monotonic clock.
   * @param stalledMs how long this process has just stood still. The line may have waited for it meanwhile.
   */
  checkTimeouts(now: number, stalledMs: number): void {
    // The total clock is the caller's time, and goes on; but an answer that is still coming has been held up by this process.
    if (this.#progressed && stalledMs > 0)
      this.#totalEnd = Math.max(this.#totalEnd, now + Math.min(stalledMs, MAX_MORE_MS))
    if (this.#progressed) this.#phaseStart = now
    else if (stalledMs > 0) this.#phaseStart = Math.min(now, this.#phaseStart + stalledMs)
    this.#progressed = false
    const phaseMs = this.#timeouts[CLOCKS[this.#phase]]
    if (now >= this.#totalEnd) {
      const timeout = timedOut('total', now - this.startedAt)
      // A caller who does not read is not the line's fault.
      this.breakOff(this.#paused ? { ...timeout, fault: null } : timeout)
    } else if (!this.#paused && now >= this.#phaseStart + phaseMs)
      this.breakOff(timedOut(this.#phase, now - this.#phaseStart))
  }

  /** Counts how the exchange ended. Returns false if it had been counted. */
  protected count(end: AttemptEnd): boolean {
    if (this.#isConcluded) return false
    this.#isConcluded = true
    const { state } = this.target
    if (state) {
      state.inFlight--
      if (end.kind !== 'abandoned') state.recent.count(1, end.kind === 'failed' && end.lineFault ? 1 : 0)
    }
    return true
  }

  /** Returns the record for the trace of an exchange whose attempt ended so. */
  recordOf(end: AttemptEnd, details: RecordDetails = {}): AttemptRecord {
    const { line, upstreamModel } = this.target
    const { skipped = 0, dropped, finishReason, sent } = details
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
      detail: failure || this.resent ? this.#detailOf(failure?.detail ?? '', failure?.unknownPath) : null,
      connectMs: this.connectMs && Math.round(this.connectMs),
      firstByteMs: this.firstByteMs && Math.round(this.firstByteMs),
      durationMs: Math.round(this.durationMs),
      skipped,
      ...(failure?.error && { upstreamError: attemptError(failure, sent) }),
      ...(dropped && { dropped }),
      ...(finishReason && !COMPLETE.has(finishReason) && { finishReason }),
    }
  }

  #detailOf(detail: string, unknownPath = false): string | null {
    if (detail === '' && !this.resent) return null
    const notes = [
      detail.slice(0, MAX_DETAIL_LENGTH).toWellFormed(),
      unknownPath && !this.target.line.endpoints ? MAY_LACK_ENDPOINT : '',
      this.resent ? RESENT : '',
    ]
    return notes.filter((note) => note !== '').join(' ')
  }
}

/** The finish reasons that the trace leaves out. */
const COMPLETE: ReadonlySet<FinishReason> = new Set(['stop', 'tool_calls'])

/**
 * Returns what the trace keeps of an upstream's error: its own names, and its message without the prompt.
 *
 * @param sent the body that was sent; undefined if it is not known.
 */
export function attemptError({ error, retryable }: Failure, sent?: SentBody): AttemptError | undefined {
  if (!error) return undefined
  const { type, code, param, message } = error
  // An error that is not the request's fault concerns our own account, and quotes its names.
  const about = retryable ? undefined : sent
  // Names are read like messages: an upstream may put the prompt anywhere.
  const kept = (text: string): string | null => (text === '' ? null : redactPrompt(text, about))
  return {
    type: kept(type),
    code: kept(code),
    param: kept(param ?? ''),
    message: kept(message),
  }
}

/** The interval of the checks in milliseconds: a clock may run over by this much, that of idleness by twice as much. */
const INTERVAL_MS = 20
/** The timer stops after this many checks with nothing to watch; starting one for every call would cost more. */
const MAX_IDLE_CHECKS = 100
/** How long sockets are read after a standstill before the clocks are judged: the rest of an answer may wait for room in them. */
const READ_AFTER_STANDSTILL_MS = 500
/** The most time that an answer has to come whole beyond its total clock, if that has run out in a standstill. */
const MAX_MORE_MS = 5000

/** A list, not a Set: V8 keeps what has left a Set alive through the tables that the Set has outgrown. */
const watched: Exchange[] = []
let timer: NodeJS.Timeout | undefined
let idleChecks = 0
let tickedAt = 0
let isReading = false
let stalledMs = 0

/** Starts the clocks of an exchange. One timer serves all. */
function watch(exchange: Exchange): void {
  exchange.place = watched.push(exchange) - 1
  if (timer) return
  tickedAt = performance.now()
  timer = setInterval(tick, INTERVAL_MS).unref()
}

/** Stops the clocks of an exchange; does nothing if they do not run. */
function unwatch(exchange: Exchange): void {
  const { place } = exchange
  if (place < 0) return
  exchange.place = -1
  const last = watched.pop() as Exchange
  if (last === exchange) return
  watched[place] = last
  last.place = place
}

/** Bytes that arrived before a clock ran out have to be read before the clock is judged. */
function tick(): void {
  const now = performance.now()
  const lateMs = now - tickedAt - INTERVAL_MS
  tickedAt = now
  if (lateMs >= STOOD_STILL_MS) stalledMs += lateMs
  if (isReading) return
  isReading = true
  if (stalledMs > 0) setTimeout(setImmediate, READ_AFTER_STANDSTILL_MS, check).unref()
  else setImmediate(check)
}

function check(): void {
  isReading = false
  const now = performance.now()
  // From the end: an exchange that is removed is replaced by the last one, which has been checked by then.
  for (let i = watched.length - 1; i >= 0; i--) watched[i]?.checkTimeouts(now, stalledMs)
  stalledMs = 0
  idleChecks = watched.length > 0 ? 0 : idleChecks + 1
  if (idleChecks < MAX_IDLE_CHECKS) return
  clearInterval(timer)
  timer = undefined
  idleChecks = 0
}
