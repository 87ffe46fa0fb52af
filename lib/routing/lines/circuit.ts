import type { CircuitSettings } from '../../core/catalog/index.ts'
import { Breaker, type CircuitState } from './breaker.ts'
import type { CircuitLink, CircuitOpening, FailureCounts } from './circuit-link.ts'
import { FailureWindow } from './failure-window.ts'
import { mayFollow, Probe, VERDICT_MS } from './probe.ts'

/** What `enter` returns: the epoch of the circuit, or the probe that the attempt is. */
export type CircuitEntry = number | Probe

/**
 * The circuit of a line, or of one model on a line, as this process sees it. opossum keeps the state and its timer: a circuit
 * that has been open for long enough lets a single probe through, which closes it or opens it again.
 *
 * What one account's calls did never closes the line to the others. A circuit that only one account's failures opened
 * holds for that account. The calls of others go through, and the first of them that fails opens the circuit for all.
 * If a probe of one account fails or stays without a verdict, only that account waits again; others may probe at once.
 *
 * The failures are counted here. opossum counts only what runs through `fire()`: each success would cost 1.1 KB and
 * 5 µs, and attempts report at their first output, so that open streams do not dilute the failure rate.
 */
export class Circuit {
  readonly #settings: CircuitSettings
  readonly #window: FailureWindow
  readonly #changes = { closed: 0, open: 0, half_open: 0 }
  /** Made when the circuit first opens: there is a circuit for each model on each line. */
  #breaker: Breaker | undefined
  /** When it is half open, on the monotonic clock. */
  #openUntil = 0
  /** Grows when the circuit closes or opens for all: a report from an earlier epoch is ignored. */
  #epoch = 0
  /** The account whose failures alone opened the circuit; undefined if it is open for all. */
  #holder: string | undefined
  /** Whether others than the holder may only probe, because the circuit was open for them, too. */
  #othersProbe = false
  /** The probe of the holder, or of anybody if the circuit is open for all. */
  #probe: Probe | undefined
  #probeOfOthers: Probe | undefined
  /** The state at the call of `close`; undefined before it. */
  #last: CircuitState | undefined
  /** How often this process itself has opened or closed the circuit. */
  turns = 0
  /** Whether another process has opened the circuit. */
  isFollowing = false
  /** Ties it to the same circuit in other processes; undefined if there is no such tie. */
  link: CircuitLink | undefined

  constructor(settings: CircuitSettings) {
    this.#settings = settings
    this.#window = new FailureWindow(settings)
  }

  /** The state, for operators: that of the holder, if the circuit is open for one account only. */
  get state(): CircuitState {
    return this.#last ?? this.#breaker?.state ?? 'closed'
  }

  /** The account that the circuit is open for; undefined if it is closed, or open for all, also while some may probe before others. */
  get holder(): string | undefined {
    return this.#othersProbe ? undefined : this.#holder
  }

  /** How often the circuit has entered each state, for metrics. */
  get changes(): Readonly<Record<CircuitState, number>> {
    return this.#changes
  }

  /** How the circuit is open; undefined if it is closed. */
  get opening(): CircuitOpening | undefined {
    if (this.state === 'closed') return undefined
    return {
      holder: this.#holder,
      othersProbe: this.#othersProbe,
      leftMs: this.#openUntil - performance.now(),
      failedForMs: Math.max(0, this.#openUntil - this.#settings.resetMs - this.#window.failsSince),
    }
  }

  /** What this process has counted in the window; undefined without a failure, or if the circuit is not closed. */
  get failures(): FailureCounts | undefined {
    return this.#last || this.state !== 'closed' ? undefined : this.#window.failures
  }

  /** Whether a probe of this process runs: one of others than the holder, or one of the holder or anybody. */
  probes(ofOthers: boolean): boolean {
    return (ofOthers ? this.#probeOfOthers : this.#probe) !== undefined
  }

  /** Whether other accounts wait for that probe: not for one that takes longer than they wait for the circuit. */
  holdsUp(ofOthers: boolean): boolean {
    const probe = ofOthers ? this.#probeOfOthers : this.#probe
    return probe !== undefined && performance.now() - probe.startedAt < this.#settings.resetMs
  }

  /** Returns the state for the calls of an account. */
  stateFor(account: string): CircuitState {
    const { state } = this
    if (state === 'closed' || !this.#isOther(account)) return state
    return this.#othersProbe ? 'half_open' : 'closed'
  }

  /** Returns whether an attempt of an account would be let through now. */
  admits(account: string): boolean {
    if (!this.#breaker || this.#mayPass(account)) return true
    this.link?.wanted(this.#isOther(account))
    return false
  }

  /** Returns the milliseconds until a probe may pass; while one runs, what is worth waiting for its verdict. */
  retryAfterMs(account: string): number {
    if (this.#mayPass(account)) return 0
    const leftMs = this.#openUntil - performance.now()
    return leftMs > 0 ? Math.ceil(leftMs) : Math.min(VERDICT_MS, this.#settings.resetMs)
  }

  /** Lets an attempt through, for which `admits` has just returned true. */
  enter(account: string): CircuitEntry {
    if (!this.#breaker) return this.#epoch
    const state = this.stateFor(account)
    if (state !== 'half_open' || this.#last) return this.#epoch
    const probe = new Probe(account)
    // The probe of another account that has run for too long keeps nobody waiting.
    if (!this.#isOther(account) && this.#probe) this.#reopenFor(this.#probe)
    if (this.#isOther(account)) this.#probeOfOthers = probe
    else this.#probe = probe
    this.link?.changed()
    return probe
  }

  /** Counts an attempt that the line answered well, up to its first output. */
  succeed(entry: CircuitEntry): void {
    if (typeof entry === 'number') {
      if ((!this.#breaker || this.state === 'closed') && entry === this.#epoch)
        this.#window.counts.count(1, 0)
    } else if (this.#decides(entry)) this.#close()
  }

  /** Counts an attempt that failed through the fault of what the circuit stands for. */
  fail(entry: CircuitEntry, account: string): void {
    if (typeof entry === 'number') {
      if (entry === this.#epoch) this.#failed(account)
    } else if (entry === this.#probeOfOthers) this.#openForAll()
    else if (this.#decides(entry)) this.#reopenFor(entry)
  }

  /** Counts the failure of an attempt that had succeeded up to its first output, at a time on the monotonic clock. */
  failLate(entry: CircuitEntry, account: string, succeededAt: number): void {
    if (entry === this.#epoch) this.#failed(account, succeededAt)
    else if (typeof entry !== 'number' && this.state === 'closed') this.#failed(account)
  }

  /** Ends a probe without a verdict. Its account waits again; others do not. */
  skip(entry: CircuitEntry): void {
    if (typeof entry === 'number' || !this.#decides(entry)) return
    if (entry === this.#probeOfOthers) {
      this.#probeOfOthers = undefined
      this.link?.changed()
    } else this.#reopenFor(entry)
  }

  /** Does as another process has done, which opened or closed the circuit. */
  follow(opening: CircuitOpening | undefined): void {
    if (this.#last) return
    this.isFollowing = opening !== undefined
    if (!opening) return void this.#turnClosed()
    if (opening.holder === undefined) this.#epoch++
    this.#turnOpen(opening.holder, opening.othersProbe, Math.min(opening.leftMs, this.#settings.resetMs))
  }

  /** Whether an attempt went well here after a time on the monotonic clock, and none has failed since. */
  wentWellSince(time: number): boolean {
    return this.#window.wentWellSince(time)
  }

  /** Opens the circuit if the failures of all processes, those of this one among them, are enough. */
  judge(): void {
    if (this.#last || this.state !== 'closed') return
    const holder = this.#window.verdict(this.link?.elsewhere)
    if (holder === null) this.#openForAll()
    else if (holder !== undefined) this.#open(holder, false)
  }

  /** Ends the timer. Running calls still see the last state, and their reports are ignored. */
  close(): void {
    this.#last ??= this.state
    this.#breaker?.shutdown()
    this.link?.ended()
  }

  #mayPass(account: string): boolean {
    const { state } = this
    if (state === 'closed') return true
    const isOther = this.#isOther(account)
    if (isOther ? !this.#othersProbe : state !== 'half_open') return isOther
    const isOurs = mayFollow(isOther ? this.#probeOfOthers : this.#probe, account, this.#settings.resetMs)
    return isOurs && this.link?.mayProbe(isOther) !== false
  }

  #isOther(account: string): boolean {
    return this.#holder !== undefined && this.#holder !== account
  }

  /** Whether a probe is one that the circuit still waits for. */
  #decides(probe: Probe): boolean {
    return !this.#last && (probe === this.#probe || probe === this.#probeOfOthers)
  }

  #failed(account: string, succeededAt?: number): void {
    if (this.#last) return
    if (this.state !== 'closed') {
      // The account that opened the circuit is not alone any more.
      if (this.#isOther(account) && !this.#othersProbe) this.#openForAll()
      return
    }
    this.#window.fail(account, succeededAt)
    this.judge()
    this.link?.failed()
  }

  #openForAll(): void {
    this.#epoch++
    this.#open(undefined, false)
  }

  /** Opens the circuit again after a probe that failed or has no verdict. Only its account waits. */
  #reopenFor({ account }: Probe): void {
    this.#open(account, this.#holder === undefined || this.#othersProbe)
  }

  #open(holder: string | undefined, othersProbe: boolean): void {
    this.turns++
    this.isFollowing = false
    this.#turnOpen(holder, othersProbe, this.#settings.resetMs)
    this.link?.changed()
  }

  /** @param forMs not above 0: a probe may pass at once. */
  #turnOpen(holder: string | undefined, othersProbe: boolean, forMs: number): void {
    this.#holder = holder
    this.#othersProbe = othersProbe
    this.#probe = undefined
    if (!othersProbe) this.#probeOfOthers = undefined
    this.#openUntil = performance.now() + forMs
    this.#changes.open++
    this.#breaker ??= new Breaker(() => {
      this.#changes.half_open++
      this.link?.halfOpened()
    })
    this.#breaker.open(this.#openUntil)
  }

  #close(): void {
    this.turns++
    this.#turnClosed()
    this.link?.changed()
  }

  #turnClosed(): void {
    this.#epoch++
    this.#holder = undefined
    this.#othersProbe = false
    this.#probe = undefined
    this.#probeOfOthers = undefined
    // With the counts from before the outage, one more failure would open the circuit again.
    this.#window.clear()
    this.#changes.closed++
    this.#breaker?.close()
  }
}
