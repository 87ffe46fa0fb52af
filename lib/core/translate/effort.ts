/** How much of the output a model may spend on thinking, for each of OpenAI's words. */
const SHARE_BY_EFFORT: Readonly<Record<string, number>> = {
  minimal: 0.1,
  low: 0.2,
  medium: 0.5,
  high: 0.8,
  xhigh: 0.95,
  max: 0.95,
}

/** Anthropic's smallest budget. */
const SMALLEST_BUDGET = 1024

/** The thinking budget for an effort, in tokens; undefined where the output is too short for any. */
export function budgetOf(effort: string, maxTokens: number): number | undefined {
  const share = SHARE_BY_EFFORT[effort]
  // The budget is part of the output and has to leave some of it.
  if (share === undefined || maxTokens <= SMALLEST_BUDGET) return undefined
  return Math.min(maxTokens - 1, Math.max(SMALLEST_BUDGET, Math.floor(maxTokens * share)))
}

/** The effort that a thinking budget amounts to, in the words that every reasoning model knows. */
export function effortOf(budget: number, maxTokens: number): string {
  const share = budget / maxTokens
  if (share < 0.35) return 'low'
  return share < 0.65 ? 'medium' : 'high'
}

/** An effort in the words that every reasoning model knows, of either protocol; undefined for none at all. */
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
