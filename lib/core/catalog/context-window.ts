import type { Line, Model } from './catalog.ts'

/**
 * The share of an estimate that is certain: estimates err by about 15 %. The gateway refuses input that is certainly too
 * long; the upstream decides on the rest.
 */
const CERTAIN_SHARE = 0.85

/** Returns the context window of a model on a line, in tokens; undefined = not restricted. */
export function windowOn(model: Model, line: Line): number | undefined {
  return line.contextWindow ?? model.contextWindow
}

/** Returns the context window that a request needs at least, in tokens. */
export function windowNeeded(estimatedInputTokens: number, maxOutputTokens: number | undefined): number {
  return Math.ceil(CERTAIN_SHARE * estimatedInputTokens) + (maxOutputTokens ?? 0)
}
