import { hash } from 'node:crypto'
import type { Call, CallRequest, OpenCall } from '../../core/call/index.ts'
import { type Line, priceAt } from '../../core/catalog/index.ts'
import { tierIn } from '../../core/catalog/service-tier.ts'
import type { ProviderConstraint } from '../../core/operations/index.ts'
import { checkedFunction } from '../../core/options/index.ts'
import type { Candidate } from './candidate.ts'
import { names } from './filters.ts'

/**
 * Returns the candidates of a call in the order in which they are tried. It must not change the list it is given.
 *
 * @example
 * const nearest: Strategy = (candidates) => candidates.toSorted((a, b) => distance(a.line) - distance(b.line))
 */
export type Strategy = (candidates: readonly Candidate[], call: Call) => readonly Candidate[]

/** The strategies that come with the toolkit. */
export type StrategyName = 'priority' | 'weighted' | 'latency' | 'price' | 'affinity'

type Score = (candidate: Candidate) => number

/** Sorts by score, lowest first. Equal scores keep their order, which is that of priority and weight. */
function ascending(candidates: readonly Candidate[], score: Score): readonly Candidate[] {
  if (candidates.length < 2) return candidates
  return candidates
    .map((candidate) => ({ candidate, score: score(candidate) }))
    .sort((a, b) => a.score - b.score)
    .map(({ candidate }) => candidate)
}

/** Lowest priority number first, then greatest weight: the order in which candidates are listed. */
const priority: Strategy = (candidates) => candidates

/** A random order in which a line of twice the weight comes first twice as often; weight 0 comes last. */
const weighted: Strategy = (candidates) =>
  ascending(candidates, ({ line }) =>
    line.weight > 0 ? -Math.log(1 - Math.random()) / line.weight : Infinity,
  )

/**
 * Least expected wait first: time to first byte × calls in flight. A line that has not been measured, or not lately, is
 * tried first, by one call at a time.
 */
const latency: Strategy = (candidates) =>
  measuredFirst(candidates, ({ state: { firstByteMs, expectedFirstByteMs, inFlight } }) => {
    if (firstByteMs === undefined) return undefined
    // A call in flight will correct the average. Until then it stands.
    return inFlight === 0 ? expectedFirstByteMs : firstByteMs * (inFlight + 1)
  })

/**
 * Sorts by a measurement. A line without one comes first if no call is under way to it, else last: nobody knows yet
 * how many calls it can bear. If no line has one, that with the fewest calls in flight comes first.
 */
function measuredFirst(
  candidates: readonly Candidate[],
  measure: (candidate: Candidate) => number | undefined,
): readonly Candidate[] {
  return ascending(candidates, (candidate) => {
    const { inFlight } = candidate.state
    return (
      measure(candidate) ?? (inFlight === 0 ? -Number.MAX_VALUE : Number.MAX_VALUE * (1 - 1 / (inFlight + 1)))
    )
  })
}

/** Cheapest first, for the tokens this call is expected to use. */
const price: Strategy = (candidates, { request }) =>
  ascending(candidates, (candidate) => expectedCost(candidate, request))

/** The same line for the same account, model and start of the prompt, so that the upstream's prompt cache is hit. */
const affinity: Strategy = (candidates, call) => {
  if (candidates.length < 2) return candidates
  const { request, principal } = call
  const prefix = request ? request.operation.promptPrefix(request.body.json) : ''
  const key = seedOf(`${principal?.accountId ?? ''}\0${request?.model.id ?? ''}\0${prefix}`)
  return ascending(candidates, ({ line }) => rendezvousScore(seedOfLine(line), key, line.weight))
}

/**
 * Most tokens per second first. A line that has not been measured is tried first, by one call at a time. Only callers
 * choose it (`provider.sort`).
 */
const throughput: Strategy = (candidates) =>
  measuredFirst(candidates, ({ state: { tokensPerSecond } }) =>
    tokensPerSecond === undefined ? undefined : -tokensPerSecond,
  )

export const STRATEGIES: Readonly<Record<StrategyName, Strategy>> = {
  priority,
  weighted,
  latency,
  price,
  affinity,
}

const CANDIDATES = { be: 'an array of the candidates that it was given', accepts: Array.isArray }

/** Returns a strategy of the app that orders a list of its own, and returns nothing but what was in it. */
export function ownStrategy(own: Strategy): Strategy {
  const order = checkedFunction('the strategy', CANDIDATES, own)
  return (candidates, call) => {
    const ordered = [...order([...candidates], call)]
    const given = new Set(candidates)
    if (ordered.every((each) => given.has(each))) return ordered
    throw new TypeError(`the strategy must return ${CANDIDATES.be}, and returned something else in it`)
  }
}

const SORTS = { price, latency, throughput } as const

/** Orders the candidates of a call. The caller's `sort` replaces the strategy, and lines of its `order` come first. */
export function orderCandidates(
  candidates: readonly Candidate[],
  strategy: Strategy,
  call: OpenCall,
  constraint: ProviderConstraint | undefined,
): readonly Candidate[] {
  if (!constraint) return strategy(candidates, call)
  const ordered = (constraint.sort ? SORTS[constraint.sort] : strategy)(candidates, call)
  const { order } = constraint
  if (order) {
    const rank = (candidate: Candidate): number => {
      const at = order.findIndex((name) => names([name], candidate.line))
      return at < 0 ? order.length : at
    }
    return ascending(ordered, rank)
  }
  if (constraint.allowFallbacks) return ordered
  for (const { line } of ordered.slice(1)) {
    const detail = 'allow_fallbacks: false, and another line comes first'
    call.routing?.eliminated.push({ line: line.id, reason: 'provider_constraint', detail })
  }
  return ordered.slice(0, 1)
}

/** Estimates the cost of a call. Its output is taken to be as long as its input, at most what was asked for. */
function expectedCost({ price }: Candidate, request: CallRequest | null): number {
  const input = request?.estimatedInputTokens ?? 1000
  const unit = priceAt(price, input, request ? tierIn(request.body.json) : undefined)
  const output = Math.min(input, request?.maxOutputTokens ?? input)
  const tokens = input * Number(unit.inputPerMillion) + output * Number(unit.outputPerMillion)
  const pieces = [unit.perRequest, unit.perImage, unit.perSecond, unit.perSearchUnit]
  const searches = (request?.webSearches ?? 0) * Number(unit.perWebSearch)
  return pieces.reduce((sum, price) => sum + Number(price), searches + tokens / 1_000_000)
}

/** Weighted rendezvous hashing: adding or losing a line moves only the keys of that line. */
function rendezvousScore(line: number, key: number, weight: number): number {
  if (weight <= 0) return Infinity
  return -Math.log((mixed(line ^ key) + 1) / (2 ** 32 + 1)) / weight
}

/** Hashes of the line ids. Hashing text for each of 200 lines and each call would take as long as the call. */
const lineSeeds = new WeakMap<Line, number>()

function seedOfLine(line: Line): number {
  const known = lineSeeds.get(line)
  if (known !== undefined) return known
  const seed = seedOf(line.id)
  lineSeeds.set(line, seed)
  return seed
}

/** Hashes a text to 32 bits, equal in every process. */
function seedOf(text: string): number {
  return Number.parseInt(hash('sha256', text).slice(0, 8), 16)
}

/** Mixes 32 bits so that close inputs give distant outputs (the last step of MurmurHash3). */
function mixed(bits: number): number {
  let x = bits ^ (bits >>> 16)
  x = Math.imul(x, 0x85ebca6b)
  x ^= x >>> 13
  x = Math.imul(x, 0xc2b2ae35)
  return (x ^ (x >>> 16)) >>> 0
}
