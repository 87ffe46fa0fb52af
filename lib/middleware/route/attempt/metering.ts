import { type CallRequest, heldInput, heldOutput } from '../../../core/call/index.ts'
import type { Price } from '../../../core/catalog/index.ts'
import { tierIn } from '../../../core/catalog/service-tier.ts'
import type { AnswerReading, ReportedUsage, StreamReader, Usage } from '../../../core/operations/index.ts'
import { unsaidSearches } from '../../../core/operations/web-searches.ts'

/** The context window of a model whose window is not known. No answer is longer, whatever was held for. */
const UNKNOWN_WINDOW = 10_000_000

/** The most web searches that are believed where they are not charged: the operator may pay for them. */
const MOST_FREE_SEARCHES = 1000

/** How often the input is read for a request with tools, because a provider may run some of them itself. */
const TOOL_ROUNDS = 10

export interface LineTerms {
  readonly price: Price
  readonly contextWindow: number | undefined
}

/**
 * Returns the usage of a whole answer as the upstream reported it, reported zeros included. Missing counts are estimated,
 * and what exceeds the reservation is bounded; the usage is marked so.
 *
 * @param terms those of the line that answered. If its price is by the piece, unreported tokens count as zero.
 */
export function usageOfAnswer(
  request: CallRequest,
  reading: Pick<AnswerReading, 'usage' | 'estimateOutput' | 'estimateAudio'>,
  terms: LineTerms,
): Usage {
  const { price } = terms
  const { priceUnit } = request.operation
  const reported = believed(request, terms, reading.usage, reading)
  let usage: Usage
  if (priceUnit === 'images' && price.perImage > 0n) usage = usageOfPieces(request, reported)
  else if (priceUnit === 'searches' && price.perSearchUnit > 0n)
    usage = usageOfSearches(request, reported, price)
  else {
    const { outputTokens } = reported
    const isCounted = outputTokens !== undefined
    const audio = isCounted ? reported.audioOutputTokens : reading.estimateAudio?.()
    usage = usageOf(request, reported, isCounted ? outputTokens : reading.estimateOutput(), isCounted, audio)
    if (priceUnit !== 'tokens') usage = { ...usage, ...piecesOf(reported) }
  }
  return reported === reading.usage ? usage : bounded(usage, reading.usage)
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
export function usageOfStream(request: CallRequest, reader: StreamReader, terms: LineTerms): Usage {
  if (request.operation.priceUnit === 'images') return usageOfImages(request, reader, terms)
  const { whole, usage, estimatedOutput, unreportedOutput, estimatedAudio = 0 } = reader
  const reported = believed(request, terms, usage, { estimateOutput: () => estimatedOutput })
  const { outputTokens, audioOutputTokens = 0 } = reported
  const counted = outputTokens === undefined ? estimatedOutput : outputTokens + unreportedOutput
  const output = whole ? counted : Math.max(counted, estimatedOutput)
  const isWhollyReported = whole && outputTokens !== undefined && unreportedOutput === 0
  const audio = isWhollyReported ? audioOutputTokens : Math.max(audioOutputTokens, estimatedAudio)
  const counts = usageOf(request, reported, output, isWhollyReported, audio)
  return reported === usage ? counts : bounded(counts, usage)
}

/** Returns the usage of a stream of images. An image that has begun counts. */
function usageOfImages(request: CallRequest, reader: StreamReader, terms: LineTerms): Usage {
  const { whole, usage: reported, estimatedOutput } = reader
  const usage = usageOfAnswer(request, { usage: reported, estimateOutput: () => estimatedOutput }, terms)
  return whole || usage.source === 'bounded' ? usage : { ...usage, source: 'estimated' }
}

/** @param outputMeasured whether `outputTokens` is what the upstream reported. */
function usageOf(
  { estimatedInputTokens, webSearches, body }: CallRequest,
  reported: ReportedUsage,
  outputTokens: number,
  outputMeasured: boolean,
  audioOutput = 0,
): Usage {
  const { inputTokens, cachedInputTokens = 0, cacheWriteTokens = 0 } = reported
  const input = inputTokens ?? Math.max(estimatedInputTokens, cachedInputTokens + cacheWriteTokens)
  // Cached tokens are part of the input.
  const cached = Math.min(cachedInputTokens, input)
  const written = Math.min(cacheWriteTokens, input - cached)
  const usage: Usage = {
    inputTokens: input,
    cachedInputTokens: cached,
    cacheWriteTokens: written,
    outputTokens,
    source: outputMeasured && inputTokens !== undefined ? 'measured' : 'estimated',
  }
  const {
    cacheWrite1hTokens: anHour = 0,
    audioInputTokens: heard = 0,
    reasoningTokens: reasoned = 0,
    webSearches: searched = webSearches > 0 ? unsaidSearches(body.json) : 0,
    // Until the line has told anything, the call counts as served in the tier that it asks for.
    serviceTier = inputTokens === undefined ? tierIn(body.json) : undefined,
  } = reported
  if (anHour + heard + reasoned + searched + audioOutput === 0 && !serviceTier) return usage
  return {
    ...usage,
    ...(anHour > 0 && { cacheWrite1hTokens: Math.min(anHour, written) }),
    ...(heard > 0 && { audioInputTokens: Math.min(heard, input - cached - written) }),
    ...(audioOutput > 0 && { audioOutputTokens: Math.min(audioOutput, outputTokens) }),
    ...(reasoned > 0 && { reasoningTokens: Math.min(reasoned, outputTokens) }),
    ...(searched > 0 && { webSearches: searched }),
    ...(serviceTier && { serviceTier }),
  }
}

/**
 * Returns the counts that are believed: input within the window, and no more output or pieces than were held for, or than
 * came. The report itself, if all of it is believed.
 *
 * @param came tells the estimated tokens of the output that came.
 */
function believed(
  request: CallRequest,
  { price, contextWindow = UNKNOWN_WINDOW }: LineTerms,
  reported: ReportedUsage,
  came: Pick<AnswerReading, 'estimateOutput'>,
): ReportedUsage {
  const { inputTokens = 0, outputTokens = 0, images = 0, searchUnits = 0 } = reported
  const { cachedInputTokens = 0, cacheWriteTokens = 0, webSearches = 0 } = reported
  const { tools, units, answers } = request
  const held = heldInput(request)
  const window = Math.max(tools > 0 ? TOOL_ROUNDS * contextWindow : contextWindow, held)
  const mostOutput = Math.min(heldOutput(request), answers * UNKNOWN_WINDOW)
  const mostSearches = price.perWebSearch === 0n ? MOST_FREE_SEARCHES : request.webSearches
  const isInputBelieved = Math.max(inputTokens, cachedInputTokens + cacheWriteTokens) <= window
  const isOutputBelieved = outputTokens <= mostOutput || outputTokens <= came.estimateOutput()
  const arePiecesBelieved = images <= units && searchUnits <= units
  const areSearchesBelieved = webSearches <= mostSearches
  const arePartsBelieved = areSearchesBelieved && (arePiecesBelieved || units === 0)
  if (isInputBelieved && isOutputBelieved && arePartsBelieved) return reported
  return {
    ...reported,
    ...(!isInputBelieved && {
      inputTokens: held,
      cachedInputTokens: Math.min(cachedInputTokens, held),
      cacheWriteTokens: Math.min(cacheWriteTokens, held),
    }),
    ...(!isOutputBelieved && { outputTokens: Math.max(mostOutput, came.estimateOutput()) }),
    ...(!arePiecesBelieved && {
      images: reported.images && Math.min(images, units),
      searchUnits: reported.searchUnits && Math.min(searchUnits, units),
    }),
    ...(!areSearchesBelieved && { webSearches: mostSearches }),
  }
}

/** Marks a usage whose report is not believed, and keeps the report. */
function bounded(usage: Usage, reported: ReportedUsage): Usage {
  return { ...usage, source: 'bounded', reported }
}
