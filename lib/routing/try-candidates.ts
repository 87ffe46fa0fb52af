import { AsyncResource } from 'node:async_hooks'
import type { AttemptRecord, Call, RequestBody, RoutingTrace } from '../core/call/index.ts'
import { GatewayError } from '../core/errors/index.ts'
import type { Untranslatable } from '../core/translate/index.ts'
import type { ExchangeEnd, Failure, Fault } from './attempt/failure.ts'
import type { AttemptPass, AttemptPolicy } from './attempt-policy.ts'
import { type Candidate, type CandidateList, isFreeMove } from './candidates/candidate.ts'
import { filterCandidates, noCandidateError, unavailable, waitFor } from './candidates/filters.ts'
import type { RoutingSettings } from './candidates/routing-options.ts'
import { orderCandidates, STRATEGIES } from './candidates/strategies.ts'
import { verdict } from './candidates/verdict.ts'
import type { CircuitEntry } from './lines/circuit.ts'

/** The body of a call that is passed on unread: a refusal can name no member of it. */
const UNREAD_BODY: RequestBody = { raw: Buffer.alloc(0), json: {} }

const NONE_YET: readonly AttemptRecord[] = []

/** Returns the trace of a call whose routing begins. */
export function newTrace({
  region,
  strategyName,
}: Pick<RoutingSettings, 'region' | 'strategyName'>): RoutingTrace {
  return { region, strategy: strategyName, eliminated: [], attempts: NONE_YET }
}

/**
 * Tries the candidates of a call in turn until one serves it. Extends the trace in `call.routing`, which must exist.
 *
 * @throws {GatewayError} (as a rejection) the verdict if no line serves the call; an error that the policy throws.
 */
export function tryCandidates<End extends ExchangeEnd>(
  call: Call,
  list: CandidateList,
  settings: RoutingSettings,
  policy: AttemptPolicy<End>,
): Promise<void> {
  return new Promise((done, failed) => {
    new CandidateWalk(call, list, settings, policy, { done, failed }).next()
  })
}

/** Waits for the end of a call's routing. It must not throw: an event of the line's connection would swallow that. */
export interface WalkEnd {
  /** Runs when the call was served, or its caller has left. */
  done(): void
  /** Receives the error that ends the call. */
  failed(error: unknown): void
}

/**
 * The way of a call along its candidates, as {@link tryCandidates} describes it. It waits for attempts by callbacks: an
 * `async` function would take three times the memory. They come with events of the line's connection, which know nothing
 * of the app's AsyncLocalStorage; an `AsyncResource` does.
 *
 * It is also the permission of the running attempt to go through the circuits of its line and model.
 */
export class CandidateWalk<End extends ExchangeEnd> extends AsyncResource implements AttemptPass<End> {
  readonly #call: Call
  readonly #list: CandidateList
  readonly #maxAttempts: number
  readonly #policy: AttemptPolicy<End>
  readonly #walkEnd: WalkEnd
  readonly #trace: RoutingTrace
  readonly #account: string
  readonly #ordered: readonly Candidate[]
  readonly #startedAt = performance.now()
  #at = 0
  /** That of the last attempt. */
  #candidate!: Candidate
  /** All attempts share the largest total clock; only the first has its own. */
  #deadline = Infinity
  #failures: Failure[] | undefined
  #fault: Untranslatable | undefined
  #lineEntry: CircuitEntry = 0
  #modelEntry: CircuitEntry = 0
  /** What the circuits were told of the running attempt; the time of its success, on the monotonic clock. */
  #reported: 'nothing' | 'all' | number = 'all'

  /** @throws {GatewayError} if no candidate is left. */
  constructor(
    call: Call,
    list: CandidateList,
    { strategy, maxAttempts }: RoutingSettings,
    policy: AttemptPolicy<End>,
    walkEnd: WalkEnd,
  ) {
    super('CandidateWalk')
    this.#call = call
    this.#list = list
    this.#maxAttempts = maxAttempts
    this.#policy = policy
    this.#walkEnd = walkEnd
    this.#trace = call.routing as RoutingTrace
    this.#account = call.principal?.accountId ?? ''
    const left = filterCandidates(list.candidates, call, policy, this.#trace.eliminated)
    // They are listed by priority.
    const constraint = (policy.request ?? policy).constraint
    const isInOrder = strategy === STRATEGIES.priority && !constraint
    this.#ordered = isInOrder ? left : orderCandidates(left, strategy, call, constraint)
    list.budget.count(1, 0)
  }

  next(): void {
    let attempt: Promise<End> | undefined
    try {
      const candidate = this.#choose()
      if (!candidate) this.#walkEnd.done()
      else {
        this.#lineEntry = candidate.state.circuit.enter(this.#account)
        this.#modelEntry = candidate.modelState.circuit.enter(this.#account)
        this.#reported = 'nothing'
        this.#call.prove()
        attempt = this.#policy.attempt(candidate, this, this.#deadline, this.#ordered)
      }
    } catch (error) {
      this.#broken(error)
    }
    attempt?.then(
      (end) => this.#conclude(end),
      (error) => this.#broken(error),
    )
  }

  ended(end: End): void {
    this.runInAsyncScope(this.#conclude, this, end)
  }

  success(): void {
    if (this.#reported !== 'nothing') return
    this.#reported = performance.now()
    const { state, modelState } = this.#candidate
    state.circuit.succeed(this.#lineEntry)
    modelState.circuit.succeed(this.#modelEntry)
    modelState.answered()
  }

  /**
   * Returns the next candidate whose rest, circuits and protocol admit the call, if the retry budget does; undefined if the
   * caller has left.
   *
   * @throws {GatewayError} the verdict if there is none.
   */
  #choose(): Candidate | undefined {
    const { eliminated } = this.#trace
    const failures = this.#failures
    while (this.#at < this.#ordered.length) {
      if (this.#call.left) return undefined
      if (failures && (failures.length >= this.#maxAttempts || performance.now() >= this.#deadline)) break
      const candidate = this.#ordered[this.#at++] as Candidate
      const untranslatable = this.#policy.prepare?.(candidate)
      if (untranslatable) {
        this.#fault ??= untranslatable
        const { message: detail } = untranslatable
        eliminated.push({ line: candidate.line.id, reason: 'protocol', detail })
        continue
      }
      const removed = unavailable(candidate, this.#account)
      if (removed) {
        eliminated.push(removed)
        continue
      }
      const isRetry = failures && !isFreeMove(failures, candidate, this.#account)
      if (isRetry && !this.#list.budget.takeRetry()) {
        this.#trace.retryBudgetSpent = true
        break
      }
      this.#candidate = candidate
      return candidate
    }
    throw this.#verdict()
  }

  #conclude(end: End): void {
    let finishing: Promise<void> | undefined
    let isOver = false
    try {
      const { record, departure } = this.#policy
      if (record) {
        const { attempts } = this.#trace
        // `push` would make room for 16 more, and `concat` is a call out of compiled code.
        this.#trace.attempts = attempts.length === 0 ? [record] : [...attempts, record]
      }
      if (departure) this.#trace.disconnect = departure.traceOf(end)
      let restMs: number | undefined
      if (end.kind === 'served') this.success()
      else restMs = this.#reportUnserved(end)
      if (end.kind !== 'failed' || end.committed) {
        isOver = true
        finishing = this.#policy.finish(end, this.#candidate)
      } else {
        this.#failures ??= []
        this.#failures.push(restMs === undefined ? end.failure : { ...end.failure, retryAfterMs: restMs })
        const totals = this.#ordered.map(({ line }) => line.timeouts.totalMs)
        this.#deadline = this.#startedAt + Math.max(...totals)
        if (!end.elsewhere) throw this.#verdict()
      }
    } catch (error) {
      this.#walkEnd.failed(error)
      return
    }
    const walkEnd = this.#walkEnd
    if (finishing)
      finishing.then(
        () => walkEnd.done(),
        (error) => walkEnd.failed(error),
      )
    else if (isOver) walkEnd.done()
    else this.next()
  }

  #broken(error: unknown): void {
    this.#skip(false)
    this.#walkEnd.failed(error)
  }

  #verdict(): GatewayError {
    const { candidates } = this.#list
    const { eliminated } = this.#trace
    if (this.#failures) {
      const restMs = waitFor('resting', candidates, eliminated, this.#account)
      return verdict(this.#failures, this.#policy.request?.body ?? UNREAD_BODY, restMs)
    }
    // A strategy may leave out candidates. Had others not been removed, it might have taken one of these.
    if (this.#ordered.length === 0 && eliminated.length === 0) return new GatewayError('no_candidate')
    return noCandidateError(candidates, eliminated, this.#account, this.#fault)
  }

  /**
   * Reports the end of an attempt that did not serve the call to the circuits, and rests the model on the line after a 429.
   *
   * @returns the milliseconds of the rest; undefined if there is none.
   */
  #reportUnserved(end: Exclude<ExchangeEnd, { readonly kind: 'served' }>): number | undefined {
    if (end.kind === 'abandoned') {
      this.#skip(false)
      return undefined
    }
    const { code, retryAfterMs, fault } = end.failure
    if (fault) this.#fail(fault)
    else this.#skip(true)
    return code === 'upstream_rate_limited' ? this.#candidate.modelState.rest(retryAfterMs) : undefined
  }

  /** Reports that the line failed. After a success it means that the answer broke off. */
  #fail(fault: Fault): void {
    const reported = this.#reported
    if (reported === 'all') return
    this.#reported = 'all'
    const { state, modelState } = this.#candidate
    if (typeof reported === 'number') modelState.circuit.failLate(this.#modelEntry, this.#account, reported)
    else if (fault === 'line') {
      state.circuit.fail(this.#lineEntry, this.#account)
      modelState.circuit.skip(this.#modelEntry)
    } else {
      // It could be reached, and takes our key.
      state.circuit.succeed(this.#lineEntry)
      modelState.circuit.fail(this.#modelEntry, this.#account)
    }
  }

  /**
   * Reports that there is no verdict on the model: the caller has left, or the line refused because of the request or its own
   * limits.
   */
  #skip(isReached: boolean): void {
    if (this.#reported !== 'nothing') return
    this.#reported = 'all'
    const { state, modelState } = this.#candidate
    if (isReached) state.circuit.succeed(this.#lineEntry)
    else state.circuit.skip(this.#lineEntry)
    modelState.circuit.skip(this.#modelEntry)
  }
}
