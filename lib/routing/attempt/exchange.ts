import type { AttemptRecord } from '../../core/call/index.ts'
import type { Line, Timeouts } from '../../core/catalog/index.ts'
import { STOOD_STILL_MS } from '../../core/time-limit/index.ts'
import type { LineState } from '../lines/line-state.ts'
import { attemptError } from './attempt-error.ts'
import { type ExchangeEnd, type Failure, timedOut } from './failure.ts'
import type { SentBody } from './promptless.ts'

export interface ExchangeTarget {
  readonly line: Line
  /** The line's name of the model; empty or null if the request names no model. */
  readonly upstreamModel: string | null
  /** The line's state; undefined if the exchange does not count towards the line's load. */
  readonly state?: LineState
}

const RUNNING: ExchangeEnd = { kind: 'abandoned' }

/** Characters of a detail that the trace keeps. */
const MAX_DETAIL_LENGTH = 300
const RESENT = '(sent again over a fresh connection: the kept-alive one was dead)'

const CLOCKS = { connect: 'connectMs', first_byte: 'firstByteMs', idle: 'idleMs' } as const

const MAY_LACK_ENDPOINT = '(the line has no such endpoint? list its "endpoints")'

/**
 * One exchange with one line, and its record for the trace. Four clocks limit it: connect, first byte, idle between
 * chunks, and total. Progress is only marked until the clocks are checked, so that a chunk costs nothing. An exchange ends
 * exactly once; later events of its connection are ignored. Subclasses implement the transport.
 */
export abstract class Exchange<End extends ExchangeEnd> implements Watched {
  readonly target: ExchangeTarget
  place = -1
  readonly #timeouts: Timeouts
  readonly #totalEnd: number
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
  durationMs = 0
  /** Parts of a translated answer that were left out. */
  skipped = 0
  /** Members of a translated request that were left out. */
  dropped: readonly string[] | undefined
  /** What was sent, if the trace may compare an error with it. */
  sent: SentBody | undefined
  /** Whether the request was sent once more, because its kept-alive connection was dead. */
  protected resent = false
  /** How the exchange ended; undefined while it runs. */
  end: End | undefined
  #ended: Promise<End> | undefined
  #resolve: ((end: End) => void) | undefined

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

  protected abstract breakOff(failure: Failure): void

  /** Resolves when the exchange has ended. Never rejects. */
  get ended(): Promise<End> {
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

  /** Ends the exchange if one of its clocks has run out. */
  look(now: number, stoodStillMs: number): void {
    // The line may have waited for this process meanwhile. The total clock is the caller's time, and goes on.
    if (this.#progressed) this.#phaseStart = now
    else if (stoodStillMs > 0) this.#phaseStart = Math.min(now, this.#phaseStart + stoodStillMs)
    this.#progressed = false
    const phaseMs = this.#timeouts[CLOCKS[this.#phase]]
    if (now >= this.#totalEnd) {
      const timeout = timedOut('total', now - this.startedAt)
      // A caller who does not read is not the line's fault.
      this.breakOff(this.#paused ? { ...timeout, fault: null } : timeout)
    } else if (!this.#paused && now >= this.#phaseStart + phaseMs)
      this.breakOff(timedOut(this.#phase, now - this.#phaseStart))
  }

  /** Notes the end. Returns false if the exchange had already ended. */
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

  get record(): AttemptRecord {
    const { line, upstreamModel } = this.target
    const end = this.end ?? RUNNING
    const failure = end.kind === 'served' ? undefined : end.failure
    const record: { -readonly [Name in keyof AttemptRecord]: AttemptRecord[Name] } = {
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
      skipped: this.skipped,
    }
    if (failure?.error) record.upstreamError = attemptError(failure, this.sent)
    if (this.dropped) record.dropped = this.dropped
    return record
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

/** An object whose clocks may run out. */
interface Watched {
  /** The index in the list of watched objects; -1 if it is not watched. */
  place: number
  /**
   * Checks the clocks, every few milliseconds.
   * @param now the time of the monotonic clock.
   * @param stoodStillMs how long this process has just stood still; what it waited for may have waited for it.
   */
  look(now: number, stoodStillMs: number): void
}

/** The interval of the checks in milliseconds: a clock may run over by this much, that of idleness by twice as much. */
const INTERVAL_MS = 20
/** The timer stops after this many checks with nothing to watch; starting one for every call would cost more. */
const MAX_IDLE_CHECKS = 100
/** How long sockets are read after a standstill before the clocks are judged: the rest of an answer may wait for room in them. */
const READ_AFTER_STANDSTILL_MS = 500

/** A list, not a Set: V8 keeps what has left a Set alive through the tables that the Set has outgrown. */
const watched: Watched[] = []
let timer: NodeJS.Timeout | undefined
let idleChecks = 0
let tickedAt = 0
let isReading = false
let stoodStillMs = 0

/** Starts watching an object. One timer serves all. */
function watch(clocks: Watched): void {
  clocks.place = watched.push(clocks) - 1
  if (timer) return
  tickedAt = performance.now()
  timer = setInterval(tick, INTERVAL_MS).unref()
}

/** Stops watching an object; does nothing if it is not watched. */
function unwatch(clocks: Watched): void {
  const { place } = clocks
  if (place < 0) return
  clocks.place = -1
  const last = watched.pop() as Watched
  if (last === clocks) return
  watched[place] = last
  last.place = place
}

/** What arrived before a clock ran out has to be read before the clock is judged. */
function tick(): void {
  const now = performance.now()
  const lateMs = now - tickedAt - INTERVAL_MS
  tickedAt = now
  if (lateMs >= STOOD_STILL_MS) stoodStillMs += lateMs
  if (isReading) return
  isReading = true
  if (stoodStillMs > 0) setTimeout(setImmediate, READ_AFTER_STANDSTILL_MS, check).unref()
  else setImmediate(check)
}

function check(): void {
  isReading = false
  const now = performance.now()
  // From the end: an object that is removed is replaced by the last one, which has been checked by then.
  for (let i = watched.length - 1; i >= 0; i--) watched[i]?.look(now, stoodStillMs)
  stoodStillMs = 0
  idleChecks = watched.length > 0 ? 0 : idleChecks + 1
  if (idleChecks < MAX_IDLE_CHECKS) return
  clearInterval(timer)
  timer = undefined
  idleChecks = 0
}
