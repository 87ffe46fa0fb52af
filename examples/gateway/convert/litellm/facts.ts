import type { Members } from './members.ts'
import { type Prices, readPrices } from './prices.ts'

/** What a model and its lines can both say; what the line says counts. */
export interface Facts {
  readonly price?: Prices | undefined
  readonly contextWindow?: number | undefined
  readonly features?: readonly string[] | undefined
}

const FEATURES: Readonly<Record<string, string>> = {
  supports_function_calling: 'tools',
  supports_vision: 'vision',
  supports_response_schema: 'json',
  supports_reasoning: 'reasoning',
}
const ALL_FEATURES = ['stream', 'tools', 'vision', 'json', 'reasoning']

export function readFacts(
  params: Members,
  info: Members,
  kind: string,
  maxOutput: number | undefined,
): Facts {
  const price = readPrices(params, info, kind)
  return {
    price: Object.keys(price).length > 0 ? price : undefined,
    contextWindow: readContextWindow(info, kind, maxOutput),
    features: readFeatures(info),
  }
}

/** LiteLLM limits input and output each; a context window is for both together. */
function readContextWindow(info: Members, kind: string, maxOutput: number | undefined): number | undefined {
  const input = info.count('max_input_tokens')
  return input === undefined ? undefined : input + (kind === 'chat' ? (maxOutput ?? 0) : 0)
}

/** A model that does not say what it supports is not restricted. So only what it does not support is written. */
function readFeatures(info: Members): readonly string[] | undefined {
  const missing = Object.entries(FEATURES).flatMap(([name, feature]) =>
    info.flag(name) === false ? [feature] : [],
  )
  return missing.length === 0 ? undefined : ALL_FEATURES.filter((feature) => !missing.includes(feature))
}

/** Returns the most output tokens. LiteLLM's `max_tokens` of a deployment is sent with each call that has none. */
export function readMaxOutput(params: Members, info: Members, protocol: string): number | undefined {
  const limit = info.count('max_output_tokens')
  const usual = params.count('max_tokens')
  if (usual !== undefined && protocol === 'openai')
    params.note(
      'max_tokens',
      `is not added to requests here: callers send it${limit ? '' : '; maxOutputTokens only says what a call can cost'}`,
    )
  if (usual !== undefined && protocol === 'anthropic' && limit !== undefined && limit !== usual)
    params.note('max_tokens', 'maxOutputTokens is sent in its place, if a caller sends none')
  return limit ?? usual
}
