import type { ProtocolName } from '../protocols/index.ts'
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
  readonly id: string
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
  /** The upstream's name of each model, by model id. */
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
  readonly models: ReadonlyMap<string, Model>
  readonly lines: readonly Line[]
  /** Returns the lines that serve a model, in the order of the config. */
  linesOf(modelId: string): readonly Line[]
  /**
   * Returns the widest context window of a model on any of its lines, in tokens; Infinity = not
   * restricted; undefined for an unknown model.
   */
  widestWindow(modelId: string): number | undefined
}

/** Builds a {@link Catalog} from models and lines that are valid. */
export function createCatalog(models: readonly Model[], lines: readonly Line[]): Catalog {
  const byId = new Map(models.map((model) => [model.id, model]))
  const byModel = new Map<string, Line[]>()
  const widest = new Map<string, number>()
  for (const model of models) {
    const own = lines.filter((line) => line.models.has(model.id))
    byModel.set(model.id, own)
    const windows =
      own.length > 0
        ? own.map((line) => windowOn(model, line) ?? Infinity)
        : [model.contextWindow ?? Infinity]
    widest.set(model.id, Math.max(...windows))
  }
  return {
    models: byId,
    lines,
    linesOf: (modelId) => byModel.get(modelId) ?? [],
    widestWindow: widest.get.bind(widest),
  }
}

/** Returns the price of a model on a line: the line's prices replace the model's, member by member. */
export function priceOn({ price: base }: Model, { price: own }: Line): Price {
  return pricedBy(base, own)
}

/** Returns the context window of a model on a line, in tokens; undefined = not restricted. */
export function windowOn(model: Model, line: Line): number | undefined {
  return line.contextWindow ?? model.contextWindow
}
