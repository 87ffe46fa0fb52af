import type { CallRequest } from '../call/index.ts'
import type { ReportedUsage, StreamReader, Usage } from '../operations/index.ts'

/**
 * The usage of an answer that is whole: what the upstream reported, a reported zero included. What it did not report
 * is estimated, and the usage marked so.
 */
export function usageOfWhole(
  request: CallRequest,
  reported: ReportedUsage,
  estimateOutput: () => number,
): Usage {
  const { inputTokens, outputTokens } = reported
  const measured = inputTokens !== undefined && outputTokens !== undefined
  return {
    inputTokens: inputTokens ?? request.estimatedInputTokens,
    cachedInputTokens: reported.cachedInputTokens ?? 0,
    cacheWriteTokens: reported.cacheWriteTokens ?? 0,
    outputTokens: outputTokens ?? estimateOutput(),
    source: measured ? 'measured' : 'estimated',
  }
}

/**
 * The usage of a stream that broke off after output: its input, and what was produced so far. A count that the upstream
 * reported on the way may lag behind what has passed through, so the greater one stands.
 */
export function usageOfPart(request: CallRequest, { usage: reported, estimatedOutput }: StreamReader): Usage {
  return {
    inputTokens: reported.inputTokens ?? request.estimatedInputTokens,
    cachedInputTokens: reported.cachedInputTokens ?? 0,
    cacheWriteTokens: reported.cacheWriteTokens ?? 0,
    outputTokens: Math.max(reported.outputTokens ?? 0, estimatedOutput),
    source: 'estimated',
  }
}
