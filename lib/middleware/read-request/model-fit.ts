import { type Catalog, type Feature, type Model, windowNeeded, windowOn } from '../../core/catalog/index.ts'
import { GatewayError } from '../../core/errors/index.ts'
import type { RequestFacts } from '../../core/operations/index.ts'

/** The refusal of a stream by an endpoint that has none. */
export function doesNotStream({ featureParams }: RequestFacts): GatewayError {
  return new GatewayError('unsupported_feature', {
    param: featureParams.get('stream') ?? 'stream',
    message: 'This endpoint does not stream. Leave "stream" out.',
  })
}

/** Refuses a request that asks for what its model lacks. */
export function requireFeatures(model: Model, facts: RequestFacts): void {
  const { features } = model
  if (!features) return
  for (const feature of facts.features) {
    if (features.has(feature)) continue
    throw new GatewayError('unsupported_feature', {
      param: facts.featureParams.get(feature),
      message: `The model does not support ${FEATURE_WORDS[feature]}. Drop it, or choose another model.`,
    })
  }
}

const FEATURE_WORDS: Readonly<Record<Feature, string>> = {
  stream: 'streaming',
  tools: 'tools',
  vision: 'image input',
  json: 'structured output',
  reasoning: 'reasoning settings',
}

/** Refuses a request that fits no line at all. `route` decides which lines it fits. */
export function requireWindow(catalog: Catalog, model: Model, facts: RequestFacts): void {
  const needed = windowNeeded(facts.windowTokens ?? facts.estimatedInputTokens, facts.maxOutputTokens)
  const lines = catalog.linesOf(model.id)
  let widest = lines.length > 0 ? 0 : (model.contextWindow ?? Number.POSITIVE_INFINITY)
  for (const line of lines) widest = Math.max(widest, windowOn(model, line) ?? Number.POSITIVE_INFINITY)
  if (widest < needed) throw new GatewayError('context_too_long')
}
