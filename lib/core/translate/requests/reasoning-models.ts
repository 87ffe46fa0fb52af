const REASONING_MODEL = /(?:^|\/)(?:o\d|gpt-(?:[5-9]|\d\d))/

/**
 * Whether a model is one of OpenAI's reasoning models, by the upstream's name. These take `max_completion_tokens` in
 * place of `max_tokens`.
 */
export function isReasoningModel(upstreamModel: string): boolean {
  return REASONING_MODEL.test(upstreamModel)
}

/** The only one of those that does not reason. It is not `gpt-5.3-chat`. */
const GPT_5_CHAT = /(?:^|\/)gpt-5-chat/

/** Whether a model accepts `temperature`, `top_p` and `stop`, by the upstream's name: OpenAI's do that do not reason. */
export function takesSampling(upstreamModel: string): boolean {
  return !isReasoningModel(upstreamModel) || GPT_5_CHAT.test(upstreamModel)
}

/**
 * Models that do not reason, and those of xAI that always reason alike: they refuse any `reasoning_effort`, Llama and Gemma
 * at Groq and in Ollama.
 */
const WITHOUT_EFFORT =
  /(?:^|\/)(?:chatgpt-|gpt-(?:3\.?5|4|\d[\d.]*-chat)|(?:meta-)?llama|mixtral|gemma-?[23](?!\d)|grok-(?:2|3(?!-mini)|4(?!\.(?:[3-9](?!\d)|20-multi))|code))/i

/** OpenAI's models that refuse functions in a chat while they reason. Some reason unless they are told not to. */
const FUNCTIONS_OR_EFFORT = /^gpt-5\.(?:[4-9]|\d\d)(?!\d)/

/**
 * Returns the `reasoning_effort` for a model, by the upstream's name.
 *
 * @param effort the effort that was asked for.
 * @param hasFunctions whether the chat has functions.
 */
export function effortMember(
  upstreamModel: string,
  effort: string | undefined,
  hasFunctions: boolean,
): {
  reasoning_effort?: string
} {
  if (WITHOUT_EFFORT.test(upstreamModel)) return {}
  if (hasFunctions && FUNCTIONS_OR_EFFORT.test(upstreamModel)) return { reasoning_effort: 'none' }
  return effort === undefined ? {} : { reasoning_effort: effort }
}
