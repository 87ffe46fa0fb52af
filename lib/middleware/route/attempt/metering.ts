import type { CallRequest } from '../../../core/call/index.ts'
import type { Price } from '../../../core/catalog/index.ts'
import type { AnswerReading, ReportedUsage, StreamReader, Usage } from '../../../core/operations/index.ts'

/**
 * More tokens than this no answer takes or makes, unless the model's window is wider: ten windows of a million, for
 * tools that a provider runs itself and whose every round reads the input again. A report beyond it is a fault.
 */
const MOST_TOKENS = 10_000_000

/** Nor has a rerank so many times the searches that its documents come to. */
const MOST_TIMES_THE_SEARCHES = 10

/**
 * The usage of an answer that came whole: what the upstream reported, a reported zero included. What it did not report,
 * or not credibly, is estimated, and the usage marked so.
 *
 * @param price of the line that answered: where it is by the piece, tokens that were not reported are none.
 */
export function usageOfAnswer(
  request: CallRequest,
  { usage, estimateOutput }: Pick<AnswerReading, 'usage' | 'estimateOutput'>,
  price: Price,
): Usage {
  const { priceUnit } = request.operation
  const reported = credible(request, usage)
  if (priceUnit === 'images' && price.perImage > 0n) return usageOfPieces(request, reported)
  if (priceUnit === 'searches' && price.perSearchUnit > 0n) return usageOfSearches(request, reported, price)
  const { outputTokens } = reported
  const tokens = usageOf(request, reported, outputTokens ?? estimateOutput(), outputTokens !== undefined)
  return priceUnit === 'tokens' ? tokens : { ...tokens, ...piecesOf(reported) }
}

/** What is made, or searched, is counted; tokens only where they are reported. */
function usageOfPieces(request: CallRequest, reported: ReportedUsage): Usage {
  const { inputTokens = 0, outputTokens = 0 } = reported
  return { ...usageOf(request, { ...reported, inputTokens }, outputTokens, true), ...piecesOf(reported) }
}

/** Searches that are not reported are those that the request comes to, unless its tokens are paid. */
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
 * The usage of a stream, whole or broken off: its input, and what was produced. What came behind the last report is
 * estimated on top of it. A count reported on the way may lag behind what has passed through, so of a stream that broke
 * off the greater of the two counts stands.
 */
export function usageOfStream(request: CallRequest, reader: StreamReader): Usage {
  const { whole, estimatedOutput, unreportedOutput } = reader
  const reported = credible(request, reader.usage)
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
  // A part is never more than the whole.
  const cached = Math.min(cachedInputTokens, input)
  return {
    inputTokens: input,
    cachedInputTokens: cached,
    cacheWriteTokens: Math.min(cacheWriteTokens, input - cached),
    outputTokens,
    source: outputMeasured && inputTokens !== undefined ? 'measured' : 'estimated',
  }
}

/** The report without the counts that cannot be. */
function credible({ model, answers, units }: CallRequest, reported: ReportedUsage): ReportedUsage {
  const most = Math.max(MOST_TOKENS, model.contextWindow ?? 0)
  return {
    inputTokens: atMost(most, reported.inputTokens),
    cachedInputTokens: atMost(most, reported.cachedInputTokens),
    cacheWriteTokens: atMost(most, reported.cacheWriteTokens),
    outputTokens: atMost(most * answers, reported.outputTokens),
    images: reported.images,
    searchUnits: atMost(MOST_TIMES_THE_SEARCHES * units, reported.searchUnits),
  }
}

function atMost(most: number, tokens: number | undefined): number | undefined {
  return tokens === undefined || tokens > most ? undefined : tokens
}
