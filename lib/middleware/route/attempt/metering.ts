import { type CallRequest, heldInput, heldOutput } from '../../../core/call/index.ts'
import type { Price } from '../../../core/catalog/index.ts'
import { tierIn } from '../../../core/catalog/service-tier.ts'
import type { AnswerReading, ReportedUsage, StreamReader, Usage } from '../../../core/operations/index.ts'
import { unsaidSearches } from '../../../core/operations/metering/web-searches.ts'

/** The context window of a model whose window is not known. No answer is longer, whatever was held for. */
const UNKNOWN_WINDOW = 10_000_000

/** The most web searches that are believed where they are not charged: the operator may pay for them. */
const MOST_FREE_SEARCHES = 1000

/** The most rounds of a loop in which a provider runs tools itself. */
const TOOL_ROUNDS = 10

export interface LineTerms {
  readonly price: Price
  readonly contextWindow: number | undefined
}

/**
 * Returns the usage of a whole answer as the upstream reported it, reported zeros included. Missing counts are estimated,
 * and what cannot be true is bounded; the usage is marked so.
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
  const reported = plausibleUsage(request, terms, reading.usage, reading)
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
  const reported = plausibleUsage(request, terms, usage, { estimateOutput: () => estimatedOutput })
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

/** Returns a usage for a caller of another protocol. A count that the line has not reported is left out: it is not known to be 0. */
export function knownUsage(usage: Usage, reported: ReportedUsage): ReportedUsage {
  return {
    ...usage,
    ...(reported.cachedInputTokens === undefined && { cachedInputTokens: undefined }),
    ...(reported.cacheWriteTokens === undefined && { cacheWriteTokens: undefined }),
  }
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
    // Until the line has reported anything, the call counts as served in the tier that it asks for.
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
 * Returns the counts that are believed, as far as they can be true: input within the window, output within what the model
 * can say or what came, pieces and searches within what was asked for. The report itself, if all of it is believed.
 *
 * @param came estimates the tokens of the output that came.
 */
function plausibleUsage(
  request: CallRequest,
  terms: LineTerms,
  reported: ReportedUsage,
  came: Pick<AnswerReading, 'estimateOutput'>,
): ReportedUsage {
  const { inputTokens = 0, outputTokens = 0, images = 0, searchUnits = 0 } = reported
  const { cachedInputTokens = 0, cacheWriteTokens = 0, webSearches = 0 } = reported
  const { units } = request
  const held = heldInput(request)
  const mostInput = Math.max(roundsOf(request) * (terms.contextWindow ?? UNKNOWN_WINDOW), held)
  // Where the window is not known, an incredible report says nothing.
  const credibleInput = terms.contextWindow === undefined ? held : mostInput
  const mostOutput = mostOutputOf(request, terms)
  const mostSearches = terms.price.perWebSearch === 0n ? MOST_FREE_SEARCHES : request.webSearches
  const isInputBelieved = Math.max(inputTokens, cachedInputTokens + cacheWriteTokens) <= mostInput
  const isOutputBelieved = outputTokens <= mostOutput || outputTokens <= came.estimateOutput()
  const arePiecesBelieved = images <= units && searchUnits <= units
  const areSearchesBelieved = webSearches <= mostSearches
  const arePartsBelieved = areSearchesBelieved && (arePiecesBelieved || units === 0)
  if (isInputBelieved && isOutputBelieved && arePartsBelieved) return reported
  return {
    ...reported,
    ...(!isInputBelieved && {
      inputTokens: credibleInput,
      cachedInputTokens: Math.min(cachedInputTokens, credibleInput),
      cacheWriteTokens: Math.min(cacheWriteTokens, credibleInput),
    }),
    ...(!isOutputBelieved && { outputTokens: Math.max(mostOutput, came.estimateOutput()) }),
    ...(!arePiecesBelieved && {
      images: reported.images && Math.min(images, units),
      searchUnits: reported.searchUnits && Math.min(searchUnits, units),
    }),
    ...(!areSearchesBelieved && { webSearches: mostSearches }),
  }
}

/** Returns how often a model may read the input and answer: a provider may run some tools itself. */
function roundsOf({ tools, webSearches }: CallRequest): number {
  return tools > 0 || webSearches > 0 ? TOOL_ROUNDS : 1
}

/**
 * Returns the most output that a model can make for a request. It is not what the request allows: several providers count,
 * and bill, reasoning beside `max_tokens`.
 */
function mostOutputOf(request: CallRequest, { contextWindow }: LineTerms): number {
  const { answers, model, operation } = request
  const held = Math.min(heldOutput(request), answers * UNKNOWN_WINDOW)
  if (operation.priceUnit !== 'tokens') return held
  const ofModel = Math.min(model.maxOutputTokens ?? contextWindow ?? UNKNOWN_WINDOW, UNKNOWN_WINDOW)
  return Math.max(held, answers * roundsOf(request) * ofModel)
}

/** Marks a usage whose report is not believed, and keeps the report. */
function bounded(usage: Usage, reported: ReportedUsage): Usage {
  return { ...usage, source: 'bounded', reported }
}
