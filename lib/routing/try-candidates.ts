import type {
  AttemptRecord,
  DisconnectTrace,
  OpenCall,
  RequestBody,
  RoutingTrace,
} from '../core/call/index.ts'
import type { GatewayError } from '../core/errors/index.ts'
import type { Untranslatable } from '../core/translate/index.ts'
import type { AttemptEnd, Failure } from './attempt/failure.ts'
import type { Candidate, CandidateList } from './candidates/candidate.ts'
import {
  type FilteredRequest,
  filterCandidates,
  noCandidateError,
  unavailable,
  waitFor,
} from './candidates/filters.ts'
import { finalErrorOf } from './candidates/final-error.ts'
import type { RoutingSettings } from './candidates/routing-options.ts'
import { orderCandidates, STRATEGIES } from './candidates/strategies.ts'
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
  readonly report: Pick<AttemptReport, 'success'>
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

/** The lines of a model, and how a call is tried on them. */
export interface ModelChoice<End extends AttemptEnd> {
  readonly list: CandidateList
  readonly asked: RoutedRequest
  readonly attempt: Attempt<End>
}

/** Why no line of a model served a call. */
export interface ModelRefusal {
  /** The answer to the call if no other model may serve it. */
  readonly error: GatewayError
  /** The failures of its attempts; none if no line could be tried. */
  readonly failures: readonly Failure[]
  /** Whether lines of another model may serve the call: no attempt has found fault with the request. */
  readonly elsewhere: boolean
  /** The shortest rest of its lines that were not tried because they rest. */
  readonly restMs: number | undefined
}

/** The deadline that all attempts of a call share: the largest total clock of the lines that may be tried. */
export class SharedDeadline {
  readonly #startedAt = performance.now()
  #totalMs = 0
  /** On the monotonic clock. Infinity until an attempt has failed: the first one has only its own clocks. */
  at = Infinity

  extend(candidates: readonly Candidate[]): void {
    this.#totalMs = Math.max(this.#totalMs, ...candidates.map(({ line }) => line.timeouts.totalMs))
    this.at = this.#startedAt + this.#totalMs
  }
}

/**
 * Tries the candidates of a call in turn until one decides it. Extends the trace in `call.routing`, which must exist.
 *
 * @returns undefined if the caller left between two attempts.
 * @throws {GatewayError} the verdict if no line serves the call; what `attempt` throws.
 */
export async function tryCandidates<End extends AttemptEnd>(
  call: OpenCall,
  list: CandidateList,
  settings: RoutingSettings,
  asked: RoutedRequest,
  attempt: Attempt<End>,
): Promise<DecidingAttempt<End> | undefined> {
  const decided = await tryModel(call, { list, asked, attempt }, settings, new SharedDeadline())
  if (isRefusal(decided)) throw decided.error
  return decided
}

export function isRefusal<End extends AttemptEnd>(
  decided: DecidingAttempt<End> | ModelRefusal | undefined,
): decided is ModelRefusal {
  return decided !== undefined && 'error' in decided
}

/**
 * Tries the candidates of one model, as {@link tryCandidates} does.
 *
 * @param deadline that of the call, whose other models may have been tried before.
 * @returns the refusal if no line serves the call; undefined if the caller left between two attempts.
 */
export async function tryModel<End extends AttemptEnd>(
  call: OpenCall,
  { list, asked, attempt }: ModelChoice<End>,
  { strategy, maxAttempts }: RoutingSettings,
  deadline: SharedDeadline,
): Promise<DecidingAttempt<End> | ModelRefusal | undefined> {
  const trace = call.routing as RoutingTrace
  const account = call.principal?.accountId ?? ''
  const { eliminated } = trace
  const { candidates, budget } = list
  const before = eliminated.length
  const failures: Failure[] = []
  let untranslatable: Untranslatable | undefined
  const remaining = filterCandidates(candidates, call, asked, eliminated)
  if (remaining.length === 0) return refusal()
  const { constraint } = asked.request ?? asked
  // They are listed by priority.
  const isInOrder = strategy === STRATEGIES.priority && !constraint
  const ordered = isInOrder ? remaining : orderCandidates(remaining, strategy, call, constraint)
  budget.count(1, 0)
  if (deadline.at < Infinity) deadline.extend(ordered)

  for (const candidate of ordered) {
    if (call.left) return undefined
    if (failures.length >= maxAttempts || performance.now() >= deadline.at) break
    const fault = asked.prepare?.(candidate)
    if (fault) {
      untranslatable ??= fault
      eliminated.push({ line: candidate.line.id, reason: 'protocol', detail: fault.message })
      continue
    }
    // The filters have just judged it, but for a first choice without fallbacks.
    const isJudged = failures.length === 0 && constraint?.allowFallbacks !== false
    const removed = isJudged ? undefined : unavailable(candidate, account)
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
    let result: AttemptResult<End>
    try {
      call.assertOwnsClaim()
      result = await attempt(candidate, { deadline: deadline.at, ordered, report })
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
    if (!result.elsewhere) return refusal(false)
    deadline.extend(ordered)
  }
  return refusal()

  function refusal(elsewhere = true): ModelRefusal {
    const removed = eliminated.slice(before)
    const restMs = waitFor('resting', candidates, removed, account)
    if (failures.length > 0) {
      const error = finalErrorOf(failures, asked.request?.body ?? UNREAD_BODY, restMs)
      return { error, failures, elsewhere, restMs }
    }
    // A strategy may leave out candidates. Had others not been removed, it might have taken one of these.
    const error = noCandidateError(candidates, removed, account, untranslatable, asked.request)
    return { error, failures, elsewhere, restMs }
  }
}

/**
 * Whether a move to another line takes nothing from the retry budget: the first one of a call after a cheap refusal,
 * to a line that is not known to fail. This adds no requests, and keeps healthy lines in use.
 */
function isFreeMove(
  [first, ...others]: readonly Failure[],
  { state, modelState, rest }: Candidate,
  account: string,
): boolean {
  if (!first?.refusedWithoutWork || others.length > 0 || rest.recovering) return false
  return state.circuit.stateFor(account) === 'closed' && modelState.circuit.stateFor(account) === 'closed'
}
