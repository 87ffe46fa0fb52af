import type { AttemptRecord, Call, DisconnectTrace, RequestBody, RoutingTrace } from '../core/call/index.ts'
import { GatewayError } from '../core/errors/index.ts'
import type { Untranslatable } from '../core/translate/index.ts'
import type { AttemptEnd, Failure } from './attempt/failure.ts'
import { type Candidate, type CandidateList, isFreeMove } from './candidates/candidate.ts'
import {
  type FilteredRequest,
  filterCandidates,
  noCandidateError,
  unavailable,
  waitFor,
} from './candidates/filters.ts'
import type { RoutingSettings } from './candidates/routing-options.ts'
import { orderCandidates, STRATEGIES } from './candidates/strategies.ts'
import { verdict } from './candidates/verdict.ts'
import { AttemptReport } from './lines/attempt-report.ts'

/** The demands of a call on the lines that are tried for it. */
export interface RoutedRequest extends FilteredRequest {
  /** Prepares the request for a candidate, or returns the member that cannot be translated for it. */
  prepare?(candidate: Candidate): Untranslatable | undefined
}

/** The circumstances of one attempt. */
export interface AttemptContext {
  /** When all attempts of the call must have ended, on the monotonic clock. */
  readonly deadline: number
  /** All lines that may be tried, in their order. */
  readonly ordered: readonly Candidate[]
  /** Reports the first output to the circuits, before the attempt has ended. */
  reportSuccess(): void
}

/** The result of one attempt. */
export type AttemptResult<End extends AttemptEnd = AttemptEnd> = End & {
  /** The record for the trace; undefined if nothing was sent. */
  readonly record: AttemptRecord | undefined
  /** Set if the caller left during the attempt. */
  readonly disconnect?: DisconnectTrace | undefined
}

/** Sends the request of a call to a candidate and receives the answer. A rejection ends the call. */
export type Attempt<End extends AttemptEnd> = (
  candidate: Candidate,
  context: AttemptContext,
) => Promise<AttemptResult<End>>

/** The attempt that decided a call: it was served, was left by its caller, or failed after output was sent. */
export interface DecidingAttempt<End extends AttemptEnd> {
  readonly candidate: Candidate
  readonly result: AttemptResult<End>
}

/** The body of a call that is passed on unread: a refusal can name no member of it. */
const UNREAD_BODY: RequestBody = { raw: Buffer.alloc(0), json: {} }

/** Returns the trace of a call whose routing begins. */
export function newTrace({
  region,
  strategyName,
}: Pick<RoutingSettings, 'region' | 'strategyName'>): RoutingTrace {
  return { region, strategy: strategyName, eliminated: [], attempts: [] }
}

/**
 * Tries the candidates of a call in turn until one decides it. Extends the trace in `call.routing`, which must exist.
 *
 * @returns undefined if the caller left between two attempts.
 * @throws {GatewayError} the verdict if no line serves the call; what `attempt` throws.
 */
export async function tryCandidates<End extends AttemptEnd>(
  call: Call,
  { candidates, budget }: CandidateList,
  { strategy, maxAttempts }: RoutingSettings,
  asked: RoutedRequest,
  attempt: Attempt<End>,
): Promise<DecidingAttempt<End> | undefined> {
  const trace = call.routing as RoutingTrace
  const account = call.principal?.accountId ?? ''
  const { eliminated } = trace
  const remaining = filterCandidates(candidates, call, asked, eliminated)
  const { constraint } = asked.request ?? asked
  // They are listed by priority.
  const isInOrder = strategy === STRATEGIES.priority && !constraint
  const ordered = isInOrder ? remaining : orderCandidates(remaining, strategy, call, constraint)
  budget.count(1, 0)

  const startedAt = performance.now()
  const failures: Failure[] = []
  // All attempts share the largest total clock; only the first has its own.
  let deadline = Infinity
  let untranslatable: Untranslatable | undefined
  for (const candidate of ordered) {
    if (call.left) return undefined
    if (failures.length >= maxAttempts || performance.now() >= deadline) break
    const fault = asked.prepare?.(candidate)
    if (fault) {
      untranslatable ??= fault
      eliminated.push({ line: candidate.line.id, reason: 'protocol', detail: fault.message })
      continue
    }
    const removed = unavailable(candidate, account)
    if (removed) {
      eliminated.push(removed)
      continue
    }
    const isFree = failures.length === 0 || isFreeMove(failures, candidate, account)
    if (!isFree && !budget.takeRetry()) {
      trace.retryBudgetSpent = true
      break
    }

    const report = new AttemptReport(candidate, account)
    const reportSuccess = (): void => report.success()
    let result: AttemptResult<End>
    try {
      call.assertOwnsClaim()
      result = await attempt(candidate, { deadline, ordered, reportSuccess })
    } catch (error) {
      report.abort()
      throw error
    }
    const { record, disconnect } = result
    if (record) trace.attempts = [...trace.attempts, record]
    if (disconnect) trace.disconnect = disconnect
    const restMs = report.end(result)
    if (result.kind !== 'failed' || result.committed) return { candidate, result }

    failures.push(restMs === undefined ? result.failure : { ...result.failure, retryAfterMs: restMs })
    if (!result.elsewhere) break
    deadline = startedAt + Math.max(...ordered.map(({ line }) => line.timeouts.totalMs))
  }

  if (failures.length > 0) {
    const restMs = waitFor('resting', candidates, eliminated, account)
    throw verdict(failures, asked.request?.body ?? UNREAD_BODY, restMs)
  }
  // A strategy may leave out candidates. Had others not been removed, it might have taken one of these.
  if (ordered.length === 0 && eliminated.length === 0) throw new GatewayError('no_candidate')
  throw noCandidateError(candidates, eliminated, account, untranslatable, asked.request)
}
