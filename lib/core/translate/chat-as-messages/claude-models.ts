/** Claude 4.6 and later, by their names. Resellers of Anthropic's API write the version with a dot. */
const SINCE_4_6 = /claude-[a-z]+-(?:4[-.][6-9](?!\d)|[5-9](?!\d)|[1-9]\d(?!\d))/

/** Claude 4.7 and later, by their names. */
const SINCE_4_7 = /claude-[a-z]+-(?:4[-.][7-9](?!\d)|[5-9](?!\d)|[1-9]\d(?!\d))/

/** Claude 5 and later. They think by default. */
const SINCE_5 = /claude-[a-z]+-(?:[5-9](?!\d)|[1-9]\d(?!\d))/

/** The models among them whose thinking can be turned off. */
const MAY_NOT_THINK = /claude-(?:(?:opus|sonnet)-5(?![-.]\d(?!\d))|haiku-5[-.]5(?!\d))/

/** Claude 5.1 and later. */
const SINCE_5_1 = /claude-(?:mythos-preview|[a-z]+-(?:5[-.][1-9](?!\d)|[6-9](?!\d)|[1-9]\d(?!\d)))/

/** Whether a model has adaptive thinking; the newest accept no budget at all. */
export function hasAdaptiveThinking(upstreamModel: string): boolean {
  return SINCE_4_6.test(upstreamModel)
}

/** Whether a model with adaptive thinking has an effort of `low` or more. */
export function takesEffort(upstreamModel: string, effort: string): boolean {
  return effort !== 'xhigh' || SINCE_4_7.test(upstreamModel)
}

/** Whether a model goes on with an answer that the request begins. */
export function takesPrefill(upstreamModel: string): boolean {
  return !SINCE_4_6.test(upstreamModel)
}

/** Whether a model accepts `temperature`, `top_p` and `top_k`. */
export function takesSampling(upstreamModel: string): boolean {
  return !SINCE_4_7.test(upstreamModel)
}

/** Whether a model thinks where the request says nothing of it. */
export function thinksByDefault(upstreamModel: string): boolean {
  return SINCE_5.test(upstreamModel)
}

/** Whether the thinking of such a model can be turned off. */
export function takesDisabledThinking(upstreamModel: string): boolean {
  return MAY_NOT_THINK.test(upstreamModel)
}

/** Whether a model leaves out the text of its thinking unless it is asked for a summary. */
export function omitsThinking(upstreamModel: string): boolean {
  return SINCE_4_7.test(upstreamModel)
}

/** Whether a request may force a model to call a tool. */
export function takesForcedTool(upstreamModel: string): boolean {
  return !SINCE_5_1.test(upstreamModel)
}
