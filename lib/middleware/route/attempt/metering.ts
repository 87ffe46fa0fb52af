import type { CallRequest } from '../../../core/call/index.ts'
import type { Price } from '../../../core/catalog/index.ts'
import type { AnswerReading, ReportedUsage, StreamReader, Usage } from '../../../core/operations/index.ts'

/**
 * The most tokens that a report is believed to hold, unless the model's window is wider: ten windows of a million,
 * for tools that a provider runs itself and whose every round reads the input again.
 */
const MAX_TOKENS = 10_000_000

/**
 * The most searches of a rerank that a report is believed to hold, as a multiple of those that its documents come to.
 */
const MAX_SEARCH_FACTOR = 10

/**
 * Returns the usage of a whole answer as the upstream reported it, reported zeros included. Counts that are missing
 * or not plausible are estimated, and the usage is marked so.
 *
 * @param price the price on the line that answered. If that is by the piece, unreported tokens count as zero.
 */
export function usageOfAnswer(
  request: CallRequest,
  reading: Pick<AnswerReading, 'usage' | 'estimateOutput'>,
  price: Price,
): Usage {
  const { priceUnit } = request.operation
  const reported = plausible(request, reading.usage)
  if (priceUnit === 'images' && price.perImage > 0n) return usageOfPieces(request, reported)
  if (priceUnit === 'searches' && price.perSearchUnit > 0n) return usageOfSearches(request, reported, price)
  const { outputTokens } = reported
  const tokens = usageOf(
    request,
    reported,
    outputTokens ?? reading.estimateOutput(),
    outputTokens !== undefined,
  )
  return priceUnit === 'tokens' ? tokens : { ...tokens, ...piecesOf(reported) }
}

/** Counts images or searches, and tokens only if they are reported. */
function usageOfPieces(request: CallRequest, reported: ReportedUsage): Usage {
  const { inputTokens = 0, outputTokens = 0 } = reported
  return { ...usageOf(request, { ...reported, inputTokens }, outputTokens, true), ...piecesOf(reported) }
}

/** Counts searches. Unreported ones are computed from the request, unless its tokens are charged. */
function usageOfSearches(request: CallRequest, reported: ReportedUsage, { inputPerMillion }: Price): Usage {
  const { searchUnits, inputTokens = 0 } = reported
  const paidByTokens = inputPerMillion > 0n && inputTokens > 0
  if (searchUnits !== undefined || paidByTokens) return usageOfPieces(request, reported)
  const estimated = usageOfPieces(request, { ...reported, searchUnits: request.units })
  return { ...estimated, source: 'estimated' }
}

function piecesOf({ images, searchUnits }: ReportedUsage): Pick<Usage, 'images' | 'searchUnits'> {
  return { ...(images !== undefined && { images }), ...(searchUnits !== undefined && { searchUnits }) }
}

/**
 * Returns the usage of a stream, whole or broken off. Output after the last report is estimated and added. A report
 * may lag behind the stream, so for a broken stream the greater of count and estimate is taken.
 */
export function usageOfStream(request: CallRequest, reader: StreamReader): Usage {
  const { whole, estimatedOutput, unreportedOutput } = reader
  const reported = plausible(request, reader.usage)
  const { outputTokens } = reported
  const counted = outputTokens === undefined ? estimatedOutput : outputTokens + unreportedOutput
  const output = whole ? counted : Math.max(counted, estimatedOutput)
  return usageOf(request, reported, output, whole && outputTokens !== undefined && unreportedOutput === 0)
}

/** @param outputMeasured whether `outputTokens` is what the upstream reported. */
function usageOf(
  { estimatedInputTokens }: CallRequest,
  { inputTokens, cachedInputTokens = 0, cacheWriteTokens = 0 }: ReportedUsage,
  outputTokens: number,
  outputMeasured: boolean,
): Usage {
  const input = inputTokens ?? Math.max(estimatedInputTokens, cachedInputTokens + cacheWriteTokens)
  // Cached tokens are part of the input.
  const cached = Math.min(cachedInputTokens, input)
  return {
    inputTokens: input,
    cachedInputTokens: cached,
    cacheWriteTokens: Math.min(cacheWriteTokens, input - cached),
    outputTokens,
    source: outputMeasured && inputTokens !== undefined ? 'measured' : 'estimated',
  }
}

/** Returns the report without implausible counts. */
function plausible({ model, answers, units }: CallRequest, reported: ReportedUsage): ReportedUsage {
  const max = Math.max(MAX_TOKENS, model.contextWindow ?? 0)
  return {
    inputTokens: atMost(max, reported.inputTokens),
    cachedInputTokens: atMost(max, reported.cachedInputTokens),
    cacheWriteTokens: atMost(max, reported.cacheWriteTokens),
    outputTokens: atMost(max * answers, reported.outputTokens),
    images: reported.images,
    searchUnits: atMost(MAX_SEARCH_FACTOR * units, reported.searchUnits),
  }
}

function atMost(max: number, tokens: number | undefined): number | undefined {
  return tokens === undefined || tokens > max ? undefined : tokens
}
