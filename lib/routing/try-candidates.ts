import type { AttemptRecord, Call, CallRequest, RequestBody, RoutingTrace } from '../core/call/index.ts'
import type { Line } from '../core/catalog/index.ts'
import { GatewayError } from '../core/errors/index.ts'
import type { Untranslatable } from '../core/translate/index.ts'
import type { Departure } from './attempt/departure.ts'
import type { ExchangeEnd } from './attempt/exchange.ts'
import type { Failure } from './attempt/outcome.ts'
import type { Candidate, CandidateList } from './candidates/candidate.ts'
import { emptied, filterCandidates, unavailable } from './candidates/filters.ts'
import type { RetryBudget } from './candidates/retry-budget.ts'
import type { RoutingSettings } from './candidates/routing-options.ts'
import { orderCandidates } from './candidates/strategies.ts'
import { verdict } from './candidates/verdict.ts'
import type { CircuitPass } from './lines/circuit.ts'

/** What one way of serving calls does with a candidate. All the rest is the same for chat, videos and pass-through. */
export interface AttemptPolicy<End extends ExchangeEnd = ExchangeEnd> {
  /** What the filters look at; null for a call that is passed on unread. */
  readonly request: CallRequest | null
  /** Tells why the request cannot be put to a line at all; absent where the line's endpoints decide. */
  unfit?(line: Line): GatewayError | undefined
  /** Prepares the request for a candidate, or tells what of it that line cannot be asked. */
  prepare?(candidate: Candidate): Untranslatable | undefined
  /**
   * Puts the request to a candidate, and takes in what comes back. Rejects with what ends the call.
   *
   * @param pass is told of the first output; of the end the loop tells it.
   * @param deadline when the attempts of the call end altogether, on the monotonic clock.
   * @param ahead all lines that may be tried, in their order.
   */
  attempt(
    candidate: Candidate,
    pass: CircuitPass,
    deadline: number,
    ahead: readonly Candidate[],
  ): Promise<End>
  /** The record of the last attempt; undefined where nothing was sent. */
  readonly record: AttemptRecord | undefined
  /** Set once the caller has left during an attempt. */
  readonly departure?: Departure | undefined
  /** Does what is to be done with an end that is the call's: it was served, left, or is told in its answer. */
  finish(end: End, candidate: Candidate): Promise<void> | undefined
}

/** No body was read that a refusal could name a member of. */
const UNREAD_BODY: RequestBody = { raw: Buffer.alloc(0), json: {} }

/** The trace of a call that begins to be routed. */
export function newTrace({
  region,
  strategyName,
}: Pick<RoutingSettings, 'region' | 'strategyName'>): RoutingTrace {
  return { region, strategy: strategyName, eliminated: [], attempts: [] }
}

/**
 * Tries the candidates of a call in turn until one serves it: the one loop over lines. Writes `call.routing`, whose
 * trace is there before.
 *
 * @throws {GatewayError} the verdict where no line serves it; what the policy throws.
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
  /** Attempts share the largest total clock; the first has its own. */
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
    if (record) trace.attempts.push(record)
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
  // A strategy may leave out what it does not want tried.
  if (ordered.length === 0) throw new GatewayError('no_candidate')
  throw emptied(all, trace.eliminated, fault)
}

/** Lets the call in at a candidate: past its rest, a retry through the budget, and through the circuit. */
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

/** Says whose fault it was: the circuit hears of it, and a line that asked to be left alone rests. */
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
