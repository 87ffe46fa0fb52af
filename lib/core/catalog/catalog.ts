import type { ProtocolName } from '../protocols/index.ts'
import { bySpecificity, isModelName, isPattern, matchedBy, mayServe, upstreamName } from './model-patterns.ts'
import { type Price, pricedBy } from './money.ts'
import type { LineAccount, LineDialect, LineRoute } from './upstream.ts'

/** The kind of a model, which decides the endpoints that serve it. */
export type ModelKind = 'chat' | 'embedding' | 'image' | 'rerank' | 'video'

/** A capability that a request can ask for and a model or line can lack. */
export type Feature = 'stream' | 'tools' | 'vision' | 'json' | 'reasoning'

/** The maximum of output tokens that a request gets where the line's protocol requires one, and neither the caller nor the model sets it. */
export const DEFAULT_MAX_TOKENS = 4096

/** The policy for members without a counterpart in a translation: remove the line, or leave the members out. */
export type UnsupportedPolicy = 'refuse' | 'drop'

/** The clocks of one attempt, in milliseconds. */
export interface Timeouts {
  readonly connectMs: number
  readonly firstByteMs: number
  readonly idleMs: number
  readonly totalMs: number
}

/** When a line's circuit opens, and for how long. */
export interface CircuitSettings {
  /** The circuit opens when at least this share of the calls in the window failed, in percent, */
  readonly errorPercent: number
  /** and the window holds at least this many calls. */
  readonly minimumCalls: number
  readonly windowMs: number
  /** Time until a probe is let through. */
  readonly resetMs: number
}

/** How long answers of a model are given again to repeated requests, and the price of that. */
export interface ModelCache {
  readonly ttlMs: number
  /** The price of an answer from the cache, in nano-units. */
  readonly hitPrice: bigint
}

/** A model as callers know it. */
export interface Model {
  /** Of the models of a catalogue, it can be a pattern, such as `gpt-*`. */
  readonly id: string
  /** The pattern that matches the id; absent if the catalogue has a model with this id. */
  readonly pattern?: string | undefined
  readonly kind: ModelKind
  /** Most tokens of input and output together; undefined = not restricted. */
  readonly contextWindow: number | undefined
  readonly maxOutputTokens: number | undefined
  /** undefined = not restricted. */
  readonly features: ReadonlySet<Feature> | undefined
  readonly price: Price
  /** The models that follow, in this order, if no line of this one can serve a call. Absent: none. */
  readonly fallbacks?: readonly string[] | undefined
  /** Absent: answers are not kept. */
  readonly cache?: ModelCache | undefined
}

/** One upstream that serves some of the models. */
export interface Line extends LineDialect, LineAccount, LineRoute {
  readonly id: string
  /** The provider's name in provider constraints. */
  readonly provider: string
  readonly protocol: ProtocolName
  /** `https://host[:port]`. */
  readonly origin: string
  /** The path before that of the endpoint, such as `/v1`, without a slash at its end. */
  readonly basePath: string
  readonly apiKey: string | undefined
  readonly region: string | undefined
  /** The names of its endpoints, such as `chat/completions`; undefined = all of its protocol. */
  readonly endpoints: ReadonlySet<string> | undefined
  readonly enabled: boolean
  /** Lower is tried first. */
  readonly priority: number
  readonly weight: number
  /** The upstream's name of each model, by model id. Both can be patterns: see `upstreamName`. */
  readonly models: ReadonlyMap<string, string>
  readonly timeouts: Timeouts
  readonly circuit: CircuitSettings
  /** Headers for each request to this line; they replace the gateway's own. Names are in lower case. */
  readonly headers: Readonly<Record<string, string>>
  /** Prices that replace those of the model, member by member. */
  readonly price: Partial<Price>
  /** The prices that the operator pays for its calls; undefined = not known. */
  readonly cost?: Price | undefined
  readonly features: ReadonlySet<Feature> | undefined
  readonly contextWindow: number | undefined
  /** The policy for members that cannot be translated for the line; the caller's comes first. Defaults to `refuse`. */
  readonly unsupported?: UnsupportedPolicy
}

/** The models and lines of a valid config. */
export interface Catalog {
  /** By id. An id can be a pattern: {@link modelOf} finds the model of a name. */
  readonly models: ReadonlyMap<string, Model>
  readonly lines: readonly Line[]
  /**
   * Returns the model that callers get by a name: the one with this id, or else one with this name as its id, and all
   * else of the most specific pattern that matches. Undefined if there is none.
   */
  modelOf(name: string): Model | undefined
  /** Returns the lines that serve a model, in the order of the config; of a pattern, those that may serve some of its names. */
  linesOf(modelId: string): readonly Line[]
  /**
   * Returns the widest context window of a model on any of its lines, in tokens; Infinity = not
   * restricted; undefined for an unknown model.
   */
  widestWindow(modelId: string): number | undefined
}

/** How many models that patterns match are remembered. */
const MAX_REMEMBERED = 1000

/** Builds a {@link Catalog} from models and lines that are valid. */
export function createCatalog(models: readonly Model[], lines: readonly Line[]): Catalog {
  const byId = new Map(models.map((model) => [model.id, model]))
  const patterns = bySpecificity(byId.keys())
  const byModel = new Map<string, Line[]>()
  const widest = new Map<string, number>()
  const remembered = new Map<string, Model>()
  const serving = (id: string): Line[] =>
    lines.filter((line) => (isPattern(id) ? mayServe(line, id) : upstreamName(line, id) !== undefined))
  for (const model of models) {
    const own = serving(model.id)
    byModel.set(model.id, own)
    widest.set(model.id, widestOn(own, model))
  }

  function modelOf(name: string): Model | undefined {
    const known = byId.get(name)
    if (known || patterns.length === 0) return known && !isPattern(name) ? known : undefined
    return remembered.get(name) ?? matchedModel(name)
  }

  function matchedModel(name: string): Model | undefined {
    const pattern = patterns.find((one) => matchedBy(one, name) !== undefined)
    if (pattern === undefined || !isModelName(name)) return undefined
    const model = { ...(byId.get(pattern) as Model), id: name, pattern }
    const [oldest] = remembered.keys()
    if (oldest !== undefined && remembered.size >= MAX_REMEMBERED) remembered.delete(oldest)
    remembered.set(name, model)
    return model
  }

  return {
    models: byId,
    lines,
    modelOf,
    linesOf: (modelId) => byModel.get(modelId) ?? (modelOf(modelId) ? serving(modelId) : []),
    widestWindow(modelId) {
      const known = widest.get(modelId)
      const model = known === undefined ? modelOf(modelId) : undefined
      return model ? widestOn(serving(modelId), model) : known
    },
  }
}

function widestOn(lines: readonly Line[], model: Model): number {
  const windows = lines.map((line) => windowOn(model, line) ?? Infinity)
  return lines.length > 0 ? Math.max(...windows) : (model.contextWindow ?? Infinity)
}

/** Returns the price of a model on a line: the line's prices replace the model's, member by member. */
export function priceOn({ price: base }: Model, { price: own }: Line): Price {
  return pricedBy(base, own)
}

/** Returns the context window of a model on a line, in tokens; undefined = not restricted. */
export function windowOn(model: Model, line: Line): number | undefined {
  return line.contextWindow ?? model.contextWindow
}
