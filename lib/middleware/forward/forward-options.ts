import type { OpenCall } from '../../core/call/index.ts'
import {
  type Catalog,
  FREE,
  type Line,
  type Price,
  parseAmount,
  upstreamName,
} from '../../core/catalog/index.ts'
import { COLLECTION_PATH, collectionOf } from '../../core/config/pass-through-path.ts'
import { budgetOf } from '../../core/memory/index.ts'
import {
  aNumber,
  anArray,
  anObject,
  aString,
  checkOptions,
  type OptionRules,
  oneOf,
  required,
} from '../../core/options/index.ts'
import { someUpstreamResources, type UpstreamResources } from '../../core/upstream-resources/index.ts'
import type { Candidate, CandidateList } from '../../routing/candidates/candidate.ts'
import { RetryBudget } from '../../routing/candidates/retry-budget.ts'
import {
  ROUTING_RULES,
  type RoutingOptions,
  routingSettings,
} from '../../routing/candidates/routing-options.ts'
import { LineRegistry } from '../../routing/lines/line-registry.ts'
import type { ForwardTerms } from './forwarding.ts'
import { RefusedFiles } from './owned/batch-files.ts'

/** Amounts as decimal strings. */
interface PassedOnPrice {
  perRequest?: string | undefined
  perMinute?: string | undefined
}

/** A rule of the config's `passThrough`: the lines that requests of a path go to, and their price. */
export interface ForwardRule {
  /** The ids of lines that can serve any request of the path. Name several only if any of them may answer. */
  lines?: readonly string[] | undefined
  /** Replaces `lines`: all lines of this model. Only keys that may use the model may call the path. */
  model?: string | undefined
  /**
   * The price of each successful answer, and of each begun minute that the answer or WebSocket takes, as decimal strings.
   * Hold at least the two for each request. Default to free.
   */
  price?: PassedOnPrice
  /** The operator's own cost of these. Defaults to unknown. `perMinute` is counted only where `price` has one. */
  cost?: PassedOnPrice | undefined
  /** The longest time of one answer or WebSocket, upload included, in milliseconds. Defaults to an hour. */
  sessionMs?: number | undefined
  /** The methods that are passed on; any other is `not_found`. `GET` includes `HEAD`. Defaults to all. */
  methods?: readonly ForwardMethod[] | undefined
  /** The path of the rule, as Express matches it; needed with `keeps`. */
  path?: string | undefined
  /**
   * Whether the path takes raw bytes: a body of a type that is neither JSON nor a form is passed on unread, unless it begins
   * as JSON. Defaults to whether the path is one at which known upstreams do, such as `/v1/audio/transcriptions`.
   */
  raw?: boolean | undefined
  /**
   * Whether callers may get credentials of the upstream, such as the ephemeral key of a realtime session. With one, a caller
   * reaches the provider past the gateway: unlimited, unbilled, in the account of the line's key. Defaults to false.
   */
  secrets?: boolean | undefined
  /**
   * The kind of things that the upstream keeps below the path, such as `voice`: a `POST` to the beginning of the path makes
   * one, the segment behind it is the id of one, and a member `voice_id` names one. What OpenAI and Anthropic keep is
   * known without it.
   */
  keeps?: string | undefined
}

/** A method that a rule can name. */
export type ForwardMethod = 'GET' | 'HEAD' | 'POST' | 'PUT' | 'PATCH' | 'DELETE'

/** Options of {@link forward}. Pass the `lines` of `route` to share circuits and rests with it. */
export interface ForwardOptions extends RoutingOptions {
  /** The lines that requests go to, and their price. */
  rule: ForwardRule
  /**
   * The record of objects stored at upstreams: the same as that of `references`. Without it, ids are passed on
   * unchecked, and all callers share what the lines store.
   */
  resources?: UpstreamResources
  /** The largest body of JSON in bytes. With `resources`, or for a key with `allowModels`, it is read before it is passed on. Defaults to 20 MiB. */
  bodyLimitBytes?: number
  /** The most bytes of JSON bodies that have not come whole, as with `readRequest`, which they share it with. Defaults to 256 MiB, less in a small process. */
  bodyBudgetBytes?: number | undefined
}

/** The lines of a rule. A 429 of a look-up keeps only other look-ups of its path from a line. */
interface ForwardLines {
  readonly all: CandidateList
  readonly lookUps: CandidateList
}

/** Longer than a realtime session of the providers. */
export const SESSION_MS = 3_600_000

/** The methods that are passed on. TRACE would show the line's key to the caller. */
const METHODS: ReadonlySet<string> = new Set(['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE'])

const RULES: OptionRules<ForwardOptions> = {
  ...ROUTING_RULES,
  rule: required(anObject("a rule, such as { lines: ['openai-us'] }")),
  resources: someUpstreamResources,
  bodyLimitBytes: aNumber('a positive number of bytes', Number.MIN_VALUE),
  bodyBudgetBytes: aNumber('a positive number of bytes', Number.MIN_VALUE),
}

const RULE_RULES: OptionRules<ForwardRule> = {
  lines: {
    be: 'an array of ids of lines that is not empty',
    accepts: (value) => Array.isArray(value) && value.length > 0,
  },
  model: aString(),
  price: anObject("amounts, such as { perRequest: '0.01' }"),
  cost: anObject("amounts, such as { perRequest: '0.008' }"),
  sessionMs: aNumber('above 0 and at most a day, in milliseconds', Number.MIN_VALUE, 86_400_000),
  methods: anArray("an array of methods, such as ['GET', 'POST']"),
  path: aString(),
  keeps: aString(),
  raw: oneOf(true, false),
  secrets: oneOf(true, false),
}

/** @throws TypeError when an option is unusable. */
export function validateForward(options: ForwardOptions) {
  checkOptions('forward', options, RULES)
  checkOptions('forward: the rule', options.rule, RULE_RULES)
  const { rule, lines = new LineRegistry(), resources, bodyLimitBytes = 20 * 1024 * 1024 } = options
  const now = typeof options.catalog === 'function' ? options.catalog() : options.catalog
  if (typeof now?.linesOf !== 'function')
    throw new TypeError('forward: "catalog" must return a catalogue, such as loadConfig(json).catalog')
  const { catalog, ...settings } = routingSettings(options)
  if ((rule.lines === undefined) === (rule.model === undefined))
    throw new TypeError('forward: "rule" needs either "lines" or "model"')
  if (rule.model !== undefined && !now.modelOf(rule.model))
    throw new TypeError(`forward: there is no model "${rule.model}"`)
  const budget = budgetOf('forward', bodyLimitBytes, options.bodyBudgetBytes)
  const collection = rule.path === undefined ? undefined : collectionOf(rule.path)
  if (rule.keeps !== undefined && collection === undefined)
    throw new TypeError(`forward: "keeps" of the rule needs its "path", ${COLLECTION_PATH}`)
  const terms: ForwardTerms = { price: priceOf(rule.price ?? {}), cost: rule.cost && priceOf(rule.cost) }
  const retries = new RetryBudget()
  const known = new WeakMap<Catalog, ForwardLines>()
  const listFor = (call?: OpenCall): ForwardLines => {
    const current = catalog(call)
    let found = known.get(current)
    if (!found) {
      const candidates = candidatesOf(current, rule, lines, terms.price)
      const all = { candidates, budget: retries }
      found = { all, lookUps: forLookUps(all, rule.path ?? '') }
      known.set(current, found)
    }
    return found
  }
  listFor()
  const { sessionMs = SESSION_MS, secrets = false, raw, keeps: kind } = rule
  const declared = collection !== undefined && kind !== undefined ? { path: collection, kind } : undefined
  const owned = resources && { resources, declared, refusedFiles: new RefusedFiles() }
  const bounds = { bodyLimitBytes, budget }
  const methods = methodsOf(rule)
  return { ...settings, modelId: rule.model, terms, sessionMs, listFor, methods, owned, bounds, raw, secrets }
}

function priceOf({ perRequest = '0', perMinute = '0' }: PassedOnPrice): Price {
  return { ...FREE, perRequest: parseAmount(perRequest), perMinute: parseAmount(perMinute) }
}

function methodsOf({ methods }: ForwardRule): ReadonlySet<string> {
  if (!methods) return METHODS
  const unknown = methods.find((method) => !METHODS.has(method))
  if (unknown !== undefined) throw new TypeError(`forward: "${unknown}" is no method that can be passed on`)
  const named = new Set<string>(methods)
  return named.has('GET') ? named.add('HEAD') : named
}

/** Returns the candidates by priority, then by weight, then in the order of the rule. */
function candidatesOf(
  catalog: Catalog,
  { lines: ids, model }: ForwardRule,
  registry: LineRegistry,
  price: Price,
): readonly Candidate[] {
  const lines = ids
    ? ids.map((id) => {
        const line = catalog.lines.find((line) => line.id === id)
        if (!line) throw new TypeError(`forward: there is no line "${id}"`)
        return line
      })
    : catalog.linesOf(model ?? '')
  return lines
    .map((line) => candidateOf(line, registry, model, price))
    .sort((a, b) => a.line.priority - b.line.priority || b.line.weight - a.line.weight)
}

export function candidateOf(line: Line, registry: LineRegistry, model?: string, price = FREE): Candidate {
  const state = registry.stateOf(line)
  const modelState = state.modelState(model ?? '')
  return {
    line,
    // The body is not changed; a rule with `lines` names no model.
    upstreamModel: model === undefined ? '' : (upstreamName(line, model) ?? model),
    price,
    contextWindow: line.contextWindow,
    state,
    modelState,
    rest: modelState,
    native: true,
    missing: undefined,
  }
}

/** Returns the same lines for requests that only look something up. */
function forLookUps(list: CandidateList, path: string): CandidateList {
  const candidates = list.candidates.map((one) => ({ ...one, rest: one.state.lookUpRest(path) }))
  return { ...list, candidates }
}
