import type { AttemptRecord, Call, CallRequest, RequestBody, RoutingTrace } from '../core/call/index.ts'
import type { Line } from '../core/catalog/index.ts'
import { GatewayError } from '../core/errors/index.ts'
import type { Untranslatable } from '../core/translate/index.ts'
import type { Departure } from './attempt/departure.ts'
import type { ExchangeEnd, Failure, Fault } from './attempt/failure.ts'
import type { Candidate, CandidateList, RetryBudget } from './candidates/candidate.ts'
import { filterCandidates, noCandidateError, unavailable } from './candidates/filters.ts'
import type { RoutingSettings } from './candidates/routing-options.ts'
import { orderCandidates, STRATEGIES } from './candidates/strategies.ts'
import { verdict } from './candidates/verdict.ts'
import type { Ticket } from './lines/circuit.ts'
import type { LineState, ModelState } from './lines/line-state.ts'

/** How `tryCandidates` serves a call with a candidate. Calls, videos and pass-through each have a policy. */
export interface AttemptPolicy<End extends ExchangeEnd = ExchangeEnd> {
  /** The request that the filters read; null for a call that is passed on unread. */
  readonly request: CallRequest | null
  /** Returns why the line cannot take the request at all. If absent, the line's endpoints decide. */
  unfit?(line: Line): GatewayError | undefined
  /** Prepares the request for a candidate, or returns the member that cannot be translated for it. */
  prepare?(candidate: Candidate): Untranslatable | undefined
  /**
   * Sends the request to a candidate and receives the answer. Rejects with an error that ends the call.
   *
   * @param pass the policy reports the first output to it; `tryCandidates` reports the end.
   * @param deadline when all attempts of the call must have ended, on the monotonic clock.
   * @param ahead all lines that may be tried, in their order.
   */
  attempt(
    candidate: Candidate,
    pass: AttemptPass,
    deadline: number,
    ahead: readonly Candidate[],
  ): Promise<End>
  /** The record of the last attempt; undefined if nothing was sent. */
  readonly record: AttemptRecord | undefined
  /** Set once the caller has left during an attempt. */
  readonly departure?: Departure | undefined
  /** Completes the call with an attempt that was served, was left by its caller, or failed after output was sent. */
  finish(end: End, candidate: Candidate): Promise<void> | undefined
}

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
 * @throws {GatewayError} the verdict if no line serves the call; an error that the policy throws.
 */
export async function tryCandidates<End extends ExchangeEnd>(
  call: Call,
  { candidates: all, budget }: CandidateList,
  { strategy, maxAttempts }: RoutingSettings,
  policy: AttemptPolicy<End>,
): Promise<void> {
  const trace = call.routing as RoutingTrace
  const { request } = policy
  const account = call.principal?.accountId ?? ''
  const left = filterCandidates(all, call, policy, trace.eliminated)
  // They are listed by priority.
  const isInOrder = strategy === STRATEGIES.priority && !call.request?.constraint
  const ordered = isInOrder ? left : orderCandidates(left, strategy, call)
  budget.noteCall()
  const startedAt = performance.now()
  /** All attempts share the largest total clock; only the first has its own. */
  let deadline = Infinity
  let failures: Failure[] | undefined
  let fault: Untranslatable | undefined
  for (let i = 0; i < ordered.length; i++) {
    const candidate = ordered[i] as Candidate
    if (call.left) return
    if (failures && (failures.length >= maxAttempts || performance.now() >= deadline)) break
    const untranslatable = policy.prepare?.(candidate)
    if (untranslatable) {
      fault ??= untranslatable
      const { message: detail } = untranslatable
      trace.eliminated.push({ line: candidate.line.id, reason: 'protocol', detail })
      continue
    }
    const pass = enter(
      candidate,
      account,
      trace,
      failures && !isFreeMove(failures, candidate, account) ? budget : undefined,
    )
    if (trace.retryBudgetSpent) break
    if (!pass) continue
    let end: End
    try {
      call.prove()
      end = await policy.attempt(candidate, pass, deadline, ordered)
    } catch (error) {
      pass.abandon()
      throw error
    }
    const { record, departure } = policy
    // `push` would make room for 16 more.
    if (record) trace.attempts = trace.attempts.concat(record)
    if (departure) trace.disconnect = departure.traceOf(end)
    const restMs = report(candidate, pass, end)
    if (end.kind !== 'failed' || end.committed) {
      const finishing = policy.finish(end, candidate)
      if (finishing) await finishing
      return
    }
    failures ??= []
    failures.push(restMs === undefined ? end.failure : { ...end.failure, retryAfterMs: restMs })
    deadline = startedAt + longestTotal(ordered)
    if (!end.elsewhere) break
  }
  if (failures) throw verdict(failures, request?.body ?? UNREAD_BODY)
  // A strategy may leave out candidates.
  if (ordered.length === 0) throw new GatewayError('no_candidate')
  throw noCandidateError(all, trace.eliminated, account, fault)
}

/** Admits the call to a candidate. Checks rest and circuits, and the retry budget if it is given. */
function enter(
  candidate: Candidate,
  account: string,
  trace: RoutingTrace,
  budget: RetryBudget | undefined,
): AttemptPass | undefined {
  const removed = unavailable(candidate, account)
  if (removed) {
    trace.eliminated.push(removed)
    return undefined
  }
  if (budget?.takeRetry() === false) {
    trace.retryBudgetSpent = true
    return undefined
  }
  return new AttemptPass(candidate.state, candidate.modelState, account)
}

/**
 * Whether a move to another line takes nothing from the retry budget: the first one of a call after a cheap refusal,
 * to a line that is not known to be ill. It multiplies nothing, and a healthy line must not stand idle.
 */
function isFreeMove(
  [first, ...others]: readonly Failure[],
  { state, modelState }: Candidate,
  account: string,
): boolean {
  if (!first?.cheap || others.length > 0 || modelState.recovering) return false
  return state.circuit.stateFor(account) === 'closed' && modelState.circuit.stateFor(account) === 'closed'
}

/**
 * Reports the end of an attempt to the circuits, and rests the model on the line after a 429.
 *
 * @returns the milliseconds of the rest; undefined if there is none.
 */
function report({ modelState }: Candidate, pass: AttemptPass, end: ExchangeEnd): number | undefined {
  if (end.kind === 'served') pass.success()
  else if (end.kind === 'abandoned') pass.abandon()
  else {
    const { code, retryAfterMs, fault } = end.failure
    if (fault) pass.failure(fault)
    else pass.refused()
    if (code === 'upstream_rate_limited') return modelState.rest(retryAfterMs)
  }
  return undefined
}

function longestTotal(candidates: readonly Candidate[]): number {
  let longest = 0
  for (const { line } of candidates) longest = Math.max(longest, line.timeouts.totalMs)
  return longest
}

/** An attempt's permission to go through the circuits of its line and model, and the means to report its result. */
export class AttemptPass {
  readonly #line: LineState
  readonly #model: ModelState
  readonly #account: string
  readonly #lineTicket: Ticket
  readonly #modelTicket: Ticket
  #reported: 'nothing' | 'success' | 'all' = 'nothing'

  /** Both circuits must admit the account. */
  constructor(line: LineState, model: ModelState, account: string) {
    this.#line = line
    this.#model = model
    this.#account = account
    this.#lineTicket = line.circuit.enter(account)
    this.#modelTicket = model.circuit.enter(account)
  }

  /** Reports that the line answered well, up to its first output. */
  success(): void {
    if (this.#reported !== 'nothing') return
    this.#reported = 'success'
    this.#line.circuit.succeed(this.#lineTicket)
    this.#model.circuit.succeed(this.#modelTicket)
    this.#model.answered()
  }

  /** Reports that the line failed. After a success it means that the answer broke off. */
  failure(fault: Fault): void {
    const reported = this.#reported
    if (reported === 'all') return
    this.#reported = 'all'
    const { circuit } = this.#model
    if (reported === 'success') circuit.failLate(this.#modelTicket, this.#account)
    else if (fault === 'line') {
      this.#line.circuit.fail(this.#lineTicket, this.#account)
      circuit.skip(this.#modelTicket)
    } else {
      // It could be reached, and takes our key.
      this.#line.circuit.succeed(this.#lineTicket)
      circuit.fail(this.#modelTicket, this.#account)
    }
  }

  /** Reports that the line refused because of the request or its own limits: no verdict on the model. */
  refused(): void {
    if (this.#reported !== 'nothing') return
    this.#reported = 'all'
    this.#line.circuit.succeed(this.#lineTicket)
    this.#model.circuit.skip(this.#modelTicket)
  }

  /** Reports that there is no verdict: the caller left. */
  abandon(): void {
    if (this.#reported !== 'nothing') return
    this.#reported = 'all'
    this.#line.circuit.skip(this.#lineTicket)
    this.#model.circuit.skip(this.#modelTicket)
  }
}
