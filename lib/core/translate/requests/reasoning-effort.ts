/** The share of the output limit that a model may spend on reasoning, by OpenAI's names of efforts. */
const SHARE_BY_EFFORT: Readonly<Record<string, number>> = {
  minimal: 0.1,
  low: 0.2,
  medium: 0.5,
  high: 0.8,
  xhigh: 0.95,
  max: 0.95,
}

/** Anthropic's smallest budget, in tokens. */
const MIN_BUDGET = 1024

/** Returns the thinking budget for an effort, in tokens; undefined if the output limit is too small for any. */
export function budgetOf(effort: string, maxTokens: number): number | undefined {
  const share = SHARE_BY_EFFORT[effort]
  // The budget is a part of the output limit and must leave some of it.
  if (share === undefined || maxTokens <= MIN_BUDGET) return undefined
  return Math.max(MIN_BUDGET, Math.floor(maxTokens * share))
}

/** Returns the effort that matches a thinking budget, by the names that all reasoning models know. */
export function effortOf(budget: number, maxTokens: number): string {
  const share = budget / maxTokens
  if (share < 0.35) return 'low'
  return share < 0.65 ? 'medium' : 'high'
}

/** Maps an effort of either protocol to the names that all reasoning models know; undefined for no reasoning. */
export function commonEffort(effort: unknown): string | undefined {
  switch (effort) {
    case 'minimal':
    case 'low':
      return 'low'
    case 'medium':
      return 'medium'
    case 'high':
    case 'xhigh':
    case 'max':
      return 'high'
    default:
      return undefined
  }
}
