const REASONING_MODEL = /(?:^|\/)(?:o\d|gpt-(?:[5-9]|\d\d))/

/**
 * Whether a model is one of OpenAI's reasoning models, by the upstream's name. These take `max_completion_tokens` in
 * place of `max_tokens`, and no temperature.
 */
export function isReasoningModel(upstreamModel: string): boolean {
  return REASONING_MODEL.test(upstreamModel)
}
