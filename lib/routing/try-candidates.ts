import type { AttemptRecord, Call, CallRequest, RequestBody, RoutingTrace } from '../core/call/index.ts'
import type { Line } from '../core/catalog/index.ts'
import { GatewayError } from '../core/errors/index.ts'
import type { Untranslatable } from '../core/translate/index.ts'
import type { Departure } from './attempt/departure.ts'
import type { ExchangeEnd } from './attempt/exchange.ts'
import type { Failure } from './attempt/outcome.ts'
import type { Candidate, CandidateList, RetryBudget } from './candidates/candidate.ts'
import { filterCandidates, noCandidateError, unavailable } from './candidates/filters.ts'
import type { RoutingSettings } from './candidates/routing-options.ts'
import { orderCandidates } from './candidates/strategies.ts'
import { verdict } from './candidates/verdict.ts'
import type { CircuitPass } from './lines/circuit.ts'

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
    pass: CircuitPass,
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
  const ordered = orderCandidates(filterCandidates(all, call, policy, trace.eliminated), strategy, call)
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
    const pass = enter(candidate, trace, failures && budget)
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
    report(candidate, pass, end)
    if (end.kind !== 'failed' || end.committed) {
      const finishing = policy.finish(end, candidate)
      if (finishing) await finishing
      return
    }
    failures ??= []
    failures.push(end.failure)
    deadline = startedAt + longestTotal(ordered)
    if (!end.elsewhere) break
  }
  if (failures) throw verdict(failures, request?.body ?? UNREAD_BODY)
  // A strategy may leave out candidates.
  if (ordered.length === 0) throw new GatewayError('no_candidate')
  throw noCandidateError(all, trace.eliminated, fault)
}

/** Admits the call to a candidate. Checks the line's rest, the retry budget if it is a retry, and the circuit. */
function enter(
  candidate: Candidate,
  trace: RoutingTrace,
  budget: RetryBudget | undefined,
): CircuitPass | undefined {
  const removed = unavailable(candidate)
  if (removed) {
    trace.eliminated.push(removed)
    return undefined
  }
  if (budget?.takeRetry() === false) {
    trace.retryBudgetSpent = true
    return undefined
  }
  return candidate.state.circuit.enter()
}

/** Reports the end of an attempt to the circuit, and rests a line that asked for it. */
function report({ state }: Candidate, pass: CircuitPass, end: ExchangeEnd): void {
  if (end.kind === 'served') pass.success()
  else if (end.kind === 'abandoned') pass.abandon()
  else {
    const { retryAfterMs, blame } = end.failure
    if (retryAfterMs !== undefined) state.rest(retryAfterMs)
    if (blame) pass.failure()
    else pass.abandon()
  }
}

function longestTotal(candidates: readonly Candidate[]): number {
  let longest = 0
  for (const { line } of candidates) longest = Math.max(longest, line.timeouts.totalMs)
  return longest
}
