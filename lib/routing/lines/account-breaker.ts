import { EventEmitter } from 'node:events'
import CircuitBreaker from 'opossum'
import type { CircuitSettings } from '../../core/catalog/index.ts'

/** State of a circuit. */
export type CircuitState = 'closed' | 'open' | 'half_open'

/** The verdict of an attempt on a line or a model: `none` if it says nothing, for example because its caller has left. */
export type Verdict = 'success' | 'failure' | 'none'

const BUCKETS = 10
/** opossum opens above its threshold, and the setting says "at least". */
const ROUNDING = 1e-6

const FAILURE = new Error('the attempt failed')
const NO_VERDICT = new Error('the attempt says nothing about the line')

/** The clocks that turn the windows of breakers, by the milliseconds of the window. */
const rotations = new Map<number, EventEmitter>()

/** Returns the clock that all windows of a length share. It ends with its last listener. */
export function rotationOf(windowMs: number): EventEmitter {
  const known = rotations.get(windowMs)
  if (known) return known
  const rotation = new EventEmitter().setMaxListeners(0)
  rotations.set(windowMs, rotation)
  const timer = setInterval(() => rotation.emit('rotate'), windowMs / BUCKETS).unref()
  rotation.on('removeListener', () => {
    if (rotation.listenerCount('rotate') > 0) return
    clearInterval(timer)
    rotations.delete(windowMs)
  })
  return rotation
}

/**
 * The breaker of one account on a line, or on a model of it. opossum decides when it opens, half-opens and closes. Another
 * process may also have found it open until a certain time.
 */
export class AccountBreaker {
  readonly #settings: CircuitSettings
  readonly #breaker: CircuitBreaker<[attempt: () => Promise<void>], void>
  /** When the account first failed. */
  readonly #failsSince = performance.now()
  #failedAt = performance.now()
  #openedAt = -Infinity
  #trialAt = -Infinity
  #heldUntil = -Infinity
  #running = 0

  /** @param changed is called when the breaker comes into another state. */
  constructor(
    settings: CircuitSettings,
    state: 'closed' | 'half_open',
    changed: (state: CircuitState) => void,
  ) {
    this.#settings = settings
    const isHalfOpen = state === 'half_open'
    this.#breaker = new CircuitBreaker((attempt) => attempt(), {
      // An attempt has clocks of its own, which end it in any case.
      timeout: false,
      errorThresholdPercentage: settings.errorPercent - ROUNDING,
      volumeThreshold: settings.minimumCalls,
      resetTimeout: settings.resetMs,
      rollingCountTimeout: settings.windowMs,
      rollingCountBuckets: BUCKETS,
      rotateBucketController: rotationOf(settings.windowMs),
      rollingPercentilesEnabled: false,
      enableSnapshots: false,
      // A filtered error counts as a success, which would close a half-open breaker.
      errorFilter: (error) => error === NO_VERDICT && !this.#breaker.halfOpen,
      ...(isHalfOpen && {
        state: { enabled: true, warmUp: false, shutdown: false, closed: false, halfOpen: true },
      }),
    })
    this.#breaker.on('failure', () => {
      this.#failedAt = performance.now()
    })
    this.#breaker.on('open', () => {
      this.#openedAt = performance.now()
      changed('open')
    })
    this.#breaker.on('halfOpen', () => changed('half_open'))
    this.#breaker.on('close', () => changed('closed'))
  }

  get state(): CircuitState {
    if (this.#breaker.closed) return 'closed'
    return this.#breaker.halfOpen && performance.now() >= this.#heldUntil ? 'half_open' : 'open'
  }

  /** Whether an attempt may run through it now. */
  get admits(): boolean {
    return this.state === 'closed' || (this.state === 'half_open' && this.#breaker.pendingClose)
  }

  /** Whether a trial runs that others wait for: not for one that takes longer than they wait for the circuit. */
  get isOnTrial(): boolean {
    const isTrying = this.#breaker.halfOpen && !this.#breaker.pendingClose
    return isTrying && performance.now() - this.#trialAt < this.#settings.resetMs
  }

  /** Whether it is not closed only because another process found it open. */
  get isOpenedByPeer(): boolean {
    return performance.now() < this.#heldUntil && !this.#breaker.opened
  }

  /** When it may be tried, on the monotonic clock. */
  get openUntil(): number {
    return Math.max(this.#openedAt + this.#settings.resetMs, this.#heldUntil)
  }

  /** When it opened here, on the monotonic clock; -Infinity if it never did. */
  get openedAt(): number {
    return this.#openedAt
  }

  /** For how long the account had failed when it opened here, in milliseconds. */
  get failedForMs(): number {
    return this.#openedAt - this.#failsSince
  }

  /** Whether there has been nothing to watch for a window. */
  get isQuiet(): boolean {
    if (this.#running > 0 || this.state === 'open') return false
    const since = this.state === 'closed' ? this.#failedAt : this.openUntil
    return performance.now() - since >= this.#settings.windowMs
  }

  /** Begins an attempt, which must end. */
  begin(): BreakerAttempt {
    const { promise, resolve, reject } = Promise.withResolvers<void>()
    if (this.#breaker.halfOpen) this.#trialAt = performance.now()
    this.#running++
    this.#breaker.fire(() => promise).catch(counted)
    return {
      breaker: this,
      end: (verdict) => {
        this.#running--
        if (verdict === 'success') resolve()
        else reject(verdict === 'failure' ? FAILURE : NO_VERDICT)
      },
    }
  }

  /** Counts the failure of an attempt that did not run through it. */
  fail(): void {
    if (!this.#breaker.closed) return
    const failing = (): never => {
      throw FAILURE
    }
    this.#breaker.fire(failing).catch(counted)
  }

  /** Follows another process, which found it open. */
  hold(ms: number): void {
    this.#heldUntil = performance.now() + ms
  }

  /** Ends the timer. */
  close(): void {
    this.#breaker.shutdown()
  }
}

/** An attempt that runs through a breaker. */
export interface BreakerAttempt {
  readonly breaker: AccountBreaker
  end(verdict: Verdict): void
}

/** `fire()` rejects with the error that it has counted. */
function counted(): void {}
