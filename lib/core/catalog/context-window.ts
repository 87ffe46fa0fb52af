import type { Line, Model } from './catalog.ts'

/** Estimates err by some 15 %: what only may be too long is the upstream's to refuse. */
const CERTAIN_SHARE = 0.85

/** The context window of a model on a line, in tokens; undefined = not restricted. */
export function windowOn(model: Model, line: Line): number | undefined {
  return line.contextWindow ?? model.contextWindow
}

/** The least window that a request surely needs, in tokens. */
export function windowNeeded(estimatedInputTokens: number, maxOutputTokens: number | undefined): number {
  return Math.ceil(CERTAIN_SHARE * estimatedInputTokens) + (maxOutputTokens ?? 0)
}
