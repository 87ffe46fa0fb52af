import type { CircuitSettings } from '../../core/catalog/index.ts'
import {
  AccountBreaker,
  type BreakerAttempt,
  type CircuitState,
  rotationOf,
  type Verdict,
} from './account-breaker.ts'

/** How long the end of a trial is worth waiting for, in milliseconds. */
const VERDICT_MS = 1000

/** The fact that processes share about a circuit: it is open to an account. */
export interface CircuitOpening {
  readonly account: string
  /** Milliseconds until it may be tried. */
  readonly leftMs: number
  /** For how long the account had failed when it opened, in milliseconds. */
  readonly failedForMs: number
}

/**
 * The circuit of a line, or of one model on a line, as this process sees it. It has a breaker for each account that has
 * failed there, until the account was quiet for one window; a healthy line has none. A circuit that is open to one account
 * is closed to all others. It is open to all if the breakers of two accounts are open. Then any account may make the trial
 * that closes it, one at a time.
 */
export class Circuit {
  readonly #settings: CircuitSettings
  readonly #breakers = new Map<string, AccountBreaker>()
  readonly #changes = { closed: 0, open: 0, half_open: 0 }
  #isOver = false
  /** The account of the last attempt, and when it began; then when one of another account last began. */
  #lastAccount: string | undefined
  #lastAt = -Infinity
  #othersAt = -Infinity
  #servedAt = -Infinity
  /** Called when a breaker opens. */
  onOpen: (() => void) | undefined
  /** Called when the circuit is of no use any more. */
  onEnd: (() => void) | undefined

  constructor(settings: CircuitSettings) {
    this.#settings = settings
  }

  /** The worst state, for operators. */
  get state(): CircuitState {
    const shut = this.#shut
    if (shut.length === 0) return 'closed'
    return shut.some(([, { state }]) => state === 'open') ? 'open' : 'half_open'
  }

  /** The only account for which the circuit is not closed; undefined if it is closed, open to all, or no other account uses it. */
  get onlyOpenFor(): string | undefined {
    const [first, second] = this.#shut
    if (!first || second) return undefined
    const [account, { isOpenedByPeer, openedAt }] = first
    const isShared = this.#lastAccount !== account || this.#othersAt > openedAt - this.#settings.windowMs
    return isOpenedByPeer || isShared ? account : undefined
  }

  /** Whether it is open, or half open, to everybody who uses it. */
  get isOpenToAll(): boolean {
    return this.state !== 'closed' && this.onlyOpenFor === undefined
  }

  /** The failures that open it, if they are all. */
  get minimumCalls(): number {
    return this.#settings.minimumCalls
  }

  /** Returns whether an attempt has begun since a time of the monotonic clock, if given of another account than one. */
  isUsedSince(time: number, besides?: string): boolean {
    return (besides !== undefined && besides === this.#lastAccount ? this.#othersAt : this.#lastAt) > time
  }

  /** How often the circuit has entered each state, for metrics. */
  get changes(): Readonly<Record<CircuitState, number>> {
    return this.#changes
  }

  /** The accounts that this process has found it open to. */
  get openings(): readonly CircuitOpening[] {
    const now = performance.now()
    return this.#shut.flatMap(([account, { openedAt, failedForMs }]) => {
      const leftMs = openedAt + this.#settings.resetMs - now
      return leftMs > 0 ? [{ account, leftMs, failedForMs }] : []
    })
  }

  /** Milliseconds until the first trial, for operators; 0 if there may be one now, or if it is closed. */
  get waitMs(): number {
    const waits = this.#shut.map(([, { openUntil }]) => openUntil - performance.now())
    return waits.length === 0 ? 0 : Math.max(0, Math.ceil(Math.min(...waits)))
  }

  /** Returns the state for the calls of an account. */
  stateFor(account: string): CircuitState {
    return this.#breakerFor(account)?.state ?? 'closed'
  }

  /** Whether it is open to an account only because another process has found it open. */
  isOpenedByPeer(account: string): boolean {
    return this.#breakerFor(account)?.isOpenedByPeer === true
  }

  /** Returns whether an attempt of an account would be let through now. */
  admits(account: string): boolean {
    if (this.#breakers.size === 0) return true
    const breaker = this.#breakerFor(account)
    if (!breaker || breaker.state === 'closed') return true
    return breaker.admits && !(this.#isShutBySeveral && this.#shut.some(([, { isOnTrial }]) => isOnTrial))
  }

  /** Returns the milliseconds until a trial may begin; while one runs, the time worth waiting for its end. */
  retryAfterMs(account: string): number {
    const breaker = this.#breakerFor(account)
    if (!breaker || this.admits(account)) return 0
    if (breaker.state !== 'open') return Math.min(VERDICT_MS, this.#settings.resetMs)
    // The timer of a busy process may be late.
    return Math.max(1, Math.ceil(breaker.openUntil - performance.now()))
  }

  /**
   * Begins an attempt, for which `admits` has just returned true. It must be given to `end`.
   *
   * @returns undefined if there is no breaker for it.
   */
  begin(account: string): BreakerAttempt | undefined {
    if (account !== this.#lastAccount) {
      this.#othersAt = this.#lastAt
      this.#lastAccount = account
    }
    this.#lastAt = performance.now()
    return this.#breakers.size === 0 ? undefined : this.#breakerFor(account)?.begin()
  }

  /** Ends an attempt up to its first output. */
  end(attempt: BreakerAttempt | undefined, account: string, verdict: Verdict): void {
    if (verdict === 'success') this.#servedAt = performance.now()
    attempt?.end(verdict)
    const hasCounted = attempt !== undefined && attempt.breaker === this.#breakers.get(account)
    if (verdict === 'failure' && !hasCounted) this.fail(account)
  }

  /** Counts a failure that did not run through a breaker: the first one, or one after the first output. */
  fail(account: string): void {
    if (!this.#isOver) (this.#breakers.get(account) ?? this.#watch(account, 'closed')).fail()
  }

  /** Is open to an account for as long as another process has found. */
  follow({ account, leftMs, failedForMs }: CircuitOpening): void {
    if (this.#isOver) return
    const openedAt = performance.now() + leftMs - this.#settings.resetMs
    // Where the line has served meanwhile, the other process is out of order, or its way to the line.
    if (this.#servedAt > openedAt - failedForMs) return
    const known = this.#breakers.get(account)
    const isShut = known !== undefined && known.state !== 'closed'
    if (known && !isShut) this.#drop(account, known)
    const breaker = isShut ? known : this.#watch(account, 'half_open')
    breaker.hold(Math.min(leftMs, this.#settings.resetMs))
  }

  /** Ends all timers. Nothing is watched any more. */
  close(): void {
    this.#isOver = true
    this.#forget()
    this.onEnd?.()
  }

  get #shut(): readonly (readonly [string, AccountBreaker])[] {
    return [...this.#breakers].filter(([, { state }]) => state !== 'closed')
  }

  get #isShutBySeveral(): boolean {
    return this.#shut.length > 1
  }

  /** Returns the breaker that an attempt of an account runs through: its own, or one that keeps the circuit open to all. */
  #breakerFor(account: string): AccountBreaker | undefined {
    const own = this.#breakers.get(account)
    const shut = this.#shut
    if (shut.length < 2 || (own && own.state !== 'closed')) return own
    const breakers = shut.map(([, breaker]) => breaker)
    return (
      breakers.find(({ admits }) => admits) ??
      breakers.reduce((first, other) => (other.openUntil < first.openUntil ? other : first))
    )
  }

  #watch(account: string, state: 'closed' | 'half_open'): AccountBreaker {
    const breaker = new AccountBreaker(this.#settings, state, (to) => this.#changed(to))
    if (this.#breakers.size === 0) rotationOf(this.#settings.windowMs).on('rotate', this.#sweep)
    this.#breakers.set(account, breaker)
    return breaker
  }

  #changed(to: CircuitState): void {
    this.#changes[to]++
    if (to === 'open') this.onOpen?.()
    // One trial that went well closes it to all, and their failures of before are over.
    else if (to === 'closed') this.#forget()
  }

  /** Drops the breakers that were quiet for one window. */
  readonly #sweep = (): void => {
    for (const [account, breaker] of this.#breakers) {
      if (!breaker.isQuiet) continue
      if (breaker.state !== 'closed' && this.#shut.length === 1) this.#changes.closed++
      this.#drop(account, breaker)
    }
  }

  #forget(): void {
    for (const [account, breaker] of this.#breakers) this.#drop(account, breaker)
  }

  #drop(account: string, breaker: AccountBreaker): void {
    breaker.close()
    this.#breakers.delete(account)
    if (this.#breakers.size === 0) rotationOf(this.#settings.windowMs).off('rotate', this.#sweep)
  }
}
