import type { CallRequest, Elimination, EliminationReason, Pin, Principal } from '../../core/call/index.ts'
import { type Line, type Price, priceAt } from '../../core/catalog/index.ts'
import { tierIn } from '../../core/catalog/service-tier.ts'
import { type ErrorCode, GatewayError } from '../../core/errors/index.ts'
import { threadDetails } from '../../core/errors/thread-details.ts'
import {
  contextReason,
  type PriceCeiling,
  type ProviderConstraint,
  windowNeeded,
} from '../../core/operations/index.ts'
import type { Untranslatable } from '../../core/translate/index.ts'
import type { Circuit } from '../lines/circuit.ts'
import type { Candidate } from './candidate.ts'
import { missingEndpointOf } from './endpoint-fit.ts'

/** The parts of a call that filters read. */
export interface FilteredCall {
  readonly principal: Principal | null
  readonly pin: Pin | null
}

/** The demands of a call on a line. */
export interface FilteredRequest {
  /** The request, or null for a call that is passed on unread; filters that read the request then do not apply. */
  readonly request: CallRequest | null
  /** The caller's constraint for a call that is passed on unread. That of any other is in its request. */
  readonly constraint?: ProviderConstraint | undefined
  /** Returns why the line cannot take the request: `no_candidate` for its protocol, else the feature that it lacks. */
  unfit?(line: Line): GatewayError | undefined
}

/** The filters in their order, each with its code. The filter that removes the last line decides the code. */
const CODES: readonly (readonly [EliminationReason, ErrorCode])[] = [
  // First, so that the filter that removes the pinned line decides the code.
  ['pinned', 'no_candidate'],
  ['disabled', 'no_candidate'],
  ['provider_constraint', 'no_candidate'],
  ['region', 'region_denied'],
  ['protocol', 'no_candidate'],
  ['feature', 'unsupported_feature'],
  ['context_window', 'context_too_long'],
  ['price_ceiling', 'no_candidate'],
  ['resting', 'upstream_rate_limited'],
  ['circuit_open', 'circuit_open'],
]

/** Returns the lines that can serve a call, and notes why each of the others cannot. */
export function filterCandidates(
  candidates: readonly Candidate[],
  call: FilteredCall,
  asked: FilteredRequest,
  eliminated: Elimination[],
): readonly Candidate[] {
  let kept: Candidate[] | undefined
  for (let i = 0; i < candidates.length; i++) {
    const candidate = candidates[i] as Candidate
    const removed = removalOf(candidate, call, asked)
    if (removed) {
      eliminated.push(removed)
      kept ??= candidates.slice(0, i)
    } else kept?.push(candidate)
  }
  return kept ?? candidates
}

/** Returns the first filter that removes a candidate; undefined if none does. */
function removalOf(
  candidate: Candidate,
  { principal, pin }: FilteredCall,
  asked: FilteredRequest,
): Elimination | undefined {
  const { line, state } = candidate
  const { request } = asked
  const { constraint } = request ?? asked
  if (pin && line.id !== pin.line) return removal(line, 'pinned', `another line has ${pin.holds}`)
  if (!state.enabled) return removal(line, 'disabled', 'switched off')
  if (constraint) {
    const detail = constraintDetail(line, constraint)
    if (detail) return removal(line, 'provider_constraint', detail)
  }
  const regions = principal?.lineRegions
  if (regions && !includesName(regions, line.region)) {
    const detail = `region ${line.region ?? 'unset'}; the account allows ${JSON.stringify(regions)}`
    return removal(line, 'region', detail)
  }
  const removed = request && removalByRequest(candidate, request, asked)
  if (removed) return removed
  if (constraint?.maxPrice) {
    const served = request ? tierIn(request.body.json) : undefined
    const price = priceAt(candidate.price, request?.estimatedInputTokens ?? 0, served)
    const detail = ceilingDetail(price, constraint.maxPrice)
    if (detail) return removal(line, 'price_ceiling', detail)
  }
  // Without fallbacks the first choice is the only one: that it cannot be tried now is no reason for another.
  if (constraint?.allowFallbacks === false && !constraint.order) return undefined
  return unavailable(candidate, principal?.accountId ?? '')
}

/** Applies the filters that read the request. */
function removalByRequest(
  { line, missing, contextWindow }: Candidate,
  { operation, model, features, windowTokens, maxOutputTokens }: CallRequest,
  asked: FilteredRequest,
): Elimination | undefined {
  const fault = asked.unfit?.(line)
  if (fault?.code === 'no_candidate') return removal(line, 'protocol', missingEndpointOf(line, operation))
  if (!asked.unfit && missing !== undefined) return removal(line, 'protocol', missing)
  if (fault)
    return removal(line, 'feature', `${line.protocol} cannot express ${fault.param ?? 'this request'}`)
  if (features.size > 0) {
    const owners = [line, model].flatMap(({ features: own }) => own ?? [])
    const lacking = [...features].filter((feature) => owners.some((own) => !own.has(feature)))
    if (lacking.length > 0) return removal(line, 'feature', `lacks ${lacking.join(', ')}`)
  }
  if (contextWindow !== undefined) {
    const needed = windowNeeded(windowTokens, maxOutputTokens)
    if (contextWindow < needed)
      return removal(line, 'context_window', `a window of ${contextWindow}, about ${needed} needed`)
  }
  return undefined
}

/** Returns why a line cannot be tried now: it rests, or a circuit is open. Undefined if it can. */
export function unavailable(
  { line, state, modelState, rest }: Candidate,
  account: string,
): Elimination | undefined {
  const { restMs } = rest
  if (restMs > 0) return removal(line, 'resting', `rate-limited by the upstream for another ${restMs} ms`)
  if (!state.circuit.admits(account))
    return removal(line, 'circuit_open', `${openDetail(state.circuit, account)}, for all models`)
  if (modelState.circuit.admits(account)) return undefined
  return removal(line, 'circuit_open', openDetail(modelState.circuit, account))
}

function openDetail(circuit: Circuit, account: string): string {
  if (circuit.stateFor(account) !== 'open') return 'half-open, and another call has the probe'
  return circuit.isOpenedByPeer(account) ? 'open, as another process found' : 'open'
}

/** The most characters of a detail, which may quote the caller and is kept once for each line. */
const MAX_DETAIL_LENGTH = 200

function removal({ id }: Line, reason: EliminationReason, detail: string): Elimination {
  const kept = detail.length > MAX_DETAIL_LENGTH ? `${detail.slice(0, MAX_DETAIL_LENGTH - 1)}…` : detail
  return { line: id, reason, detail: kept.toWellFormed() }
}

/**
 * Returns the refusal of a call whose lines were all removed. The last filter that removed a line decides the code,
 * with the wait if it is known.
 *
 * @param candidates all candidates of the model.
 * @param account the caller's, whose circuits determine the wait.
 * @param untranslatable the member of the request that could not be translated for a line.
 * @param request the request that did not fit; null for a call that is passed on unread.
 */
export function noCandidateError(
  candidates: readonly Candidate[],
  eliminated: readonly Elimination[],
  account: string,
  untranslatable?: Untranslatable,
  request: CallRequest | null = null,
): GatewayError {
  const lastFilter = CODES.findLast(([reason]) => eliminated.some((removed) => removed.reason === reason))
  if (!lastFilter) return new GatewayError('no_candidate')
  const [reason, code] = lastFilter
  if (reason === 'protocol' && untranslatable) return untranslatableMember(untranslatable)
  const words = MESSAGES[reason]
  if (reason === 'context_window' && request)
    return new GatewayError(code, { reason: contextReason(request, widestOf(candidates, eliminated)) })
  return new GatewayError(code, {
    retryAfterMs: waitFor(reason, candidates, eliminated, account),
    ...(words !== undefined && { message: `${words} ${SEE_TRACE}` }),
  })
}

/** Returns the widest window among the lines that were removed for theirs. */
function widestOf(candidates: readonly Candidate[], eliminated: readonly Elimination[]): number {
  const removed = new Set(removedBy('context_window', eliminated))
  return Math.max(
    ...candidates.map(({ line, contextWindow }) => (removed.has(line.id) ? (contextWindow ?? 0) : 0)),
  )
}

function removedBy(reason: EliminationReason, eliminated: readonly Elimination[]): string[] {
  return eliminated.flatMap(({ line, reason: why }) => (why === reason ? [line] : []))
}

const SEE_TRACE = 'The routing trace in the call log says what removed each line.'

/** The messages to callers whose lines were removed for another reason than their provider constraint. */
const MESSAGES: Readonly<Partial<Record<EliminationReason, string>>> = {
  pinned:
    'The line that stores an object of this request is not configured for this model. Send the request without that object.',
  disabled: 'All remaining lines of this model are disabled. Choose another model.',
  protocol:
    'No remaining line of this model serves this endpoint. Use another endpoint, or choose another model.',
  price_ceiling:
    'All remaining lines of this model cost more than "max_price" of "provider" allows. Raise it, or choose another model.',
}

function untranslatableMember({ param, what, dispensable }: Untranslatable): GatewayError {
  const named = what === undefined ? param : `${what} (${param})`
  const instead = dispensable
    ? 'Drop it, choose another model, or send the header "X-Gateway-Unsupported: drop".'
    : 'Drop it, or choose another model.'
  return new GatewayError('unsupported_feature', {
    param,
    ...(param === 'thread' && { details: threadDetails('thread_unsupported_request') }),
    message: `The model is served in another protocol, which has no counterpart for ${named}. ${instead}`,
  })
}

/** Returns the shortest wait for a line that a filter removed; undefined if it is not known. */
export function waitFor(
  reason: EliminationReason,
  candidates: readonly Candidate[],
  eliminated: readonly Elimination[],
  account: string,
): number | undefined {
  // Only the lines that this filter removed show when a retry makes sense.
  const removed = new Set(removedBy(reason, eliminated))
  const waiting = candidates.filter(({ line }) => removed.has(line.id))
  if (reason === 'resting') return shortest(waiting.map(({ rest }) => rest.restMs))
  if (reason !== 'circuit_open') return undefined
  // Both circuits must let the call through.
  const waits = waiting.map(({ state, modelState }) =>
    Math.max(state.circuit.retryAfterMs(account), modelState.circuit.retryAfterMs(account)),
  )
  return shortest(waits)
}

function shortest(waits: readonly number[]): number | undefined {
  const known = waits.filter((ms) => ms > 0)
  return known.length > 0 ? Math.min(...known) : undefined
}

function constraintDetail(line: Line, constraint: ProviderConstraint): string | undefined {
  const { only, ignore, order, allowFallbacks, regions } = constraint
  if (only && !names(only, line)) return `only: ${JSON.stringify(only)}`
  if (ignore && names(ignore, line)) return `ignore: ${JSON.stringify(ignore)}`
  if (regions && !includesName(regions, line.region)) return `region: ${JSON.stringify(regions)}`
  if (order && !allowFallbacks && !names(order, line))
    return `order without fallbacks: ${JSON.stringify(order)}`
  return undefined
}

/** Whether a list of provider names and line ids includes this line. */
export function names(list: readonly string[], line: { id: string; provider: string }): boolean {
  return list.includes(line.id) || list.includes(line.provider)
}

function includesName(list: readonly string[], name: string | undefined): boolean {
  return name !== undefined && list.includes(name)
}

function ceilingDetail(price: Price, ceiling: PriceCeiling): string | undefined {
  const pairs = [
    ['prompt', ceiling.prompt, price.inputPerMillion],
    ['completion', ceiling.completion, price.outputPerMillion],
    ['request', ceiling.request, price.perRequest],
    ['image', ceiling.image, price.perImage],
  ] as const
  const above = pairs.filter(([, most, actual]) => most !== undefined && actual > most)
  return above.length > 0 ? `exceeds max_price in ${above.map(([unit]) => unit).join(', ')}` : undefined
}
