/** Claude 4.6 and later, by their names. Resellers of Anthropic's API write the version with a dot. */
const SINCE_4_6 = /claude-[a-z]+-(?:4[-.][6-9](?!\d)|[5-9](?!\d)|[1-9]\d(?!\d))/

/** Claude 4.7 and later, by their names. */
const SINCE_4_7 = /claude-[a-z]+-(?:4[-.][7-9](?!\d)|[5-9](?!\d)|[1-9]\d(?!\d))/

/** Whether a model has adaptive thinking; the newest accept no budget at all. */
export function hasAdaptiveThinking(upstreamModel: string): boolean {
  return SINCE_4_6.test(upstreamModel)
}

/** Whether a model goes on with an answer that the request begins. */
export function takesPrefill(upstreamModel: string): boolean {
  return !SINCE_4_6.test(upstreamModel)
}

/** Whether a model accepts `temperature`, `top_p` and `top_k`. */
export function takesSampling(upstreamModel: string): boolean {
  return !SINCE_4_7.test(upstreamModel)
}
