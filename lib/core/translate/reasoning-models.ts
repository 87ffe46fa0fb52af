const REASONING_MODEL = /(?:^|\/)(?:o\d|gpt-(?:[5-9]|\d\d))/

/**
 * Whether a model, by its upstream's name, is one of OpenAI's reasoning models: they take no `max_tokens` and no
 * temperature. Others know no `max_completion_tokens`.
 */
export function isReasoningModel(upstreamModel: string): boolean {
  return REASONING_MODEL.test(upstreamModel)
}
