import type { CallRequest, Elimination, EliminationReason, Pin, Principal } from '../../core/call/index.ts'
import { type Line, windowNeeded } from '../../core/catalog/index.ts'
import { type ErrorCode, GatewayError } from '../../core/errors/index.ts'
import type { PriceCeiling, ProviderConstraint } from '../../core/operations/index.ts'
import type { Untranslatable } from '../../core/translate/index.ts'
import { speechDetail, unfitDetail } from '../lines/line-speech.ts'
import type { Candidate } from './candidate.ts'

/** What filters judge a line by that look at no request. */
export interface LineContext {
  readonly principal: Principal | null
}

/** What filters judge by. */
export interface FilterContext extends LineContext {
  readonly request: CallRequest
  readonly pin: Pin | null
  /** Why it cannot be put to a line: `no_candidate` for its protocol, else what that has no words for. */
  readonly unfit?: ((line: Line) => GatewayError | undefined) | undefined
}

/** One condition that a line must meet. */
interface Filter<Context = FilterContext> {
  readonly reason: EliminationReason
  /** The refusal when this filter removes the last line. */
  readonly code: ErrorCode
  /** Whether it can remove anything for this call. */
  applies(context: Context): boolean
  /** Why the line is removed, for the trace; undefined keeps it. */
  removes(candidate: Candidate, context: Context): string | undefined
}

const always = (): boolean => true

const DISABLED: Filter<LineContext> = {
  reason: 'disabled',
  code: 'no_candidate',
  applies: always,
  removes: ({ state }) => (state.enabled ? undefined : 'switched off'),
}

const REGION: Filter<LineContext> = {
  reason: 'region',
  code: 'region_denied',
  applies: ({ principal }) => principal?.lineRegions !== undefined,
  removes: ({ line }, { principal }) =>
    includesName(principal?.lineRegions, line.region)
      ? undefined
      : `region ${line.region ?? 'unset'}; the account allows ${JSON.stringify(principal?.lineRegions)}`,
}

const RESTING: Filter<LineContext> = {
  reason: 'resting',
  code: 'upstream_rate_limited',
  applies: always,
  removes: ({ state }) => {
    const ms = state.restMs
    return ms > 0 ? `asked to be left alone for another ${Math.ceil(ms)} ms` : undefined
  },
}

const CIRCUIT_OPEN: Filter<LineContext> = {
  reason: 'circuit_open',
  code: 'circuit_open',
  applies: always,
  removes: ({ state }) => (state.circuit.admits ? undefined : circuitDetail(state.circuit.state)),
}

/** In this order; the one that removes the last line decides the code. */
const FILTERS: readonly Filter[] = [
  {
    // First, so that what keeps the one line away decides the code.
    reason: 'pinned',
    code: 'no_candidate',
    applies: ({ pin }) => pin !== null,
    removes: ({ line }, { pin }) => (line.id === pin?.line ? undefined : `another line has ${pin?.holds}`),
  },
  DISABLED,
  {
    reason: 'provider_constraint',
    code: 'no_candidate',
    applies: ({ request }) => request.constraint !== undefined,
    removes: (candidate, { request }) =>
      constraintDetail(candidate, request.constraint as ProviderConstraint),
  },
  REGION,
  {
    reason: 'protocol',
    code: 'no_candidate',
    applies: always,
    removes: ({ line }, { request: { operation }, unfit }) => {
      if (!unfit) return speechDetail(line, operation)
      return unfit(line)?.code === 'no_candidate' ? unfitDetail(line, operation) : undefined
    },
  },
  {
    reason: 'feature',
    code: 'unsupported_feature',
    applies: ({ request, unfit }) => request.features.size > 0 || unfit !== undefined,
    removes: ({ line }, { request, unfit }) => {
      const fault = unfit?.(line)
      if (fault) return `${line.protocol} has no words for ${fault.param ?? 'it'}`
      if (!line.features) return undefined
      const missing = [...request.features].filter((feature) => !line.features?.has(feature))
      return missing.length > 0 ? `lacks ${missing.join(', ')}` : undefined
    },
  },
  {
    reason: 'context_window',
    code: 'context_too_long',
    applies: always,
    removes: ({ contextWindow }, { request }) => {
      if (contextWindow === undefined) return undefined
      const needed = windowNeeded(request.windowTokens, request.maxOutputTokens)
      return contextWindow < needed ? `a window of ${contextWindow}, about ${needed} needed` : undefined
    },
  },
  {
    reason: 'price_ceiling',
    code: 'no_candidate',
    applies: ({ request }) => request.constraint?.maxPrice !== undefined,
    removes: (candidate, { request }) =>
      ceilingDetail(candidate, request.constraint?.maxPrice as PriceCeiling),
  },
  RESTING,
  CIRCUIT_OPEN,
]

/** Those that also judge a call whose body nobody reads. */
const LINE_FILTERS: readonly Filter<LineContext>[] = [DISABLED, REGION, RESTING, CIRCUIT_OPEN]

/** Words for a line that its circuit keeps away. */
export function circuitDetail(state: string): string {
  return state === 'half_open' ? 'half-open, and another call has the probe' : 'open'
}

/**
 * Removes the lines that cannot serve a call, noting each with its reason.
 *
 * @throws {GatewayError} with the code of the filter that removed the last line; `no_candidate` when there was none.
 */
export function filterCandidates(
  candidates: readonly Candidate[],
  context: FilterContext,
  eliminated: Elimination[],
): readonly Candidate[] {
  return keptBy(FILTERS, candidates, context, eliminated)
}

/** The same for a call whose body is passed on unread: switched off, region, resting and circuit count. */
export function filterLines(
  candidates: readonly Candidate[],
  context: LineContext,
  eliminated: Elimination[],
): readonly Candidate[] {
  return keptBy(LINE_FILTERS, candidates, context, eliminated)
}

function keptBy<Context>(
  all: readonly Filter<Context>[],
  candidates: readonly Candidate[],
  context: Context,
  eliminated: Elimination[],
): readonly Candidate[] {
  const filters = all.filter((filter) => filter.applies(context))
  const kept: Candidate[] = []
  for (const candidate of candidates) {
    if (!isRemoved(filters, candidate, context, eliminated)) kept.push(candidate)
  }
  if (kept.length === 0) throw emptied(candidates, eliminated)
  return kept
}

/** Whether a filter removes a candidate. */
function isRemoved<Context>(
  filters: readonly Filter<Context>[],
  candidate: Candidate,
  context: Context,
  eliminated: Elimination[],
): boolean {
  for (const filter of filters) {
    const detail = filter.removes(candidate, context)
    if (detail === undefined) continue
    eliminated.push({ line: candidate.line.id, reason: filter.reason, detail })
    return true
  }
  return false
}

/**
 * The refusal of a call whose lines are all removed: by the last of the filters that removed one, with the wait where it
 * is known.
 *
 * @param candidates all of the model's.
 * @param untranslatable what of the request a line could not be asked.
 */
export function emptied(
  candidates: readonly Candidate[],
  eliminated: readonly Elimination[],
  untranslatable?: Untranslatable,
): GatewayError {
  const emptying = FILTERS.findLast(({ reason }) => eliminated.some((removed) => removed.reason === reason))
  if (!emptying) return new GatewayError('no_candidate')
  const { reason, code } = emptying
  if (reason === 'protocol' && untranslatable) return inOtherWords(untranslatable)
  // Only the waits of those that this filter removed tell when a retry makes sense.
  const removed = new Set(eliminated.flatMap(({ line, reason: why }) => (why === reason ? [line] : [])))
  const waiting = candidates.filter(({ line }) => removed.has(line.id))
  return new GatewayError(code, { retryAfterMs: waitFor(reason, waiting) })
}

function inOtherWords({ param }: Untranslatable): GatewayError {
  return new GatewayError('unsupported_feature', {
    param,
    message: `The model is served in another protocol, which has no counterpart for ${param}. Drop it, or choose another model.`,
  })
}

function waitFor(reason: EliminationReason, candidates: readonly Candidate[]): number | undefined {
  if (reason === 'resting') return shortest(candidates.map(({ state }) => state.restMs))
  if (reason !== 'circuit_open') return undefined
  return shortest(candidates.map(({ state }) => (state.circuit.admits ? 0 : state.circuit.retryAfterMs)))
}

function shortest(waits: readonly number[]): number | undefined {
  const known = waits.filter((ms) => ms > 0)
  return known.length > 0 ? Math.min(...known) : undefined
}

function constraintDetail({ line }: Candidate, constraint: ProviderConstraint): string | undefined {
  const { only, ignore, order, allowFallbacks, regions } = constraint
  if (only && !names(only, line)) return `only: ${JSON.stringify(only)}`
  if (ignore && names(ignore, line)) return `ignore: ${JSON.stringify(ignore)}`
  if (regions && !includesName(regions, line.region)) return `region: ${JSON.stringify(regions)}`
  if (order && !allowFallbacks && !names(order, line))
    return `order without fallbacks: ${JSON.stringify(order)}`
  return undefined
}

/** Whether a list of providers and lines names this line. */
export function names(list: readonly string[], line: { id: string; provider: string }): boolean {
  return list.includes(line.id) || list.includes(line.provider)
}

function includesName(list: readonly string[] | undefined, name: string | undefined): boolean {
  return name !== undefined && list?.includes(name) === true
}

function ceilingDetail({ price }: Candidate, ceiling: PriceCeiling): string | undefined {
  const pairs = [
    ['prompt', ceiling.prompt, price.inputPerMillion],
    ['completion', ceiling.completion, price.outputPerMillion],
    ['request', ceiling.request, price.perRequest],
    ['image', ceiling.image, price.perImage],
  ] as const
  const dearer = pairs.filter(([, most, actual]) => most !== undefined && actual > most)
  return dearer.length > 0 ? `dearer than max_price in ${dearer.map(([unit]) => unit).join(', ')}` : undefined
}
