import { isJsonObject, type JsonObject, nonEmptyString, objectsIn, tokenCount } from '../../json/index.ts'
import type { AnswerReading, ReportedUsage } from '../operation.ts'

/**
 * Output tokens of one square image of 1024 × 1024, as OpenAI's models count them; an image of another size has 1.5
 * times as many.
 */
const TOKENS_BY_QUALITY: ReadonlyMap<unknown, number> = new Map([
  ['low', 272],
  ['medium', 1056],
  ['high', 4160],
])
const TOKENS_OF_UNKNOWN_QUALITY = 1056

/** Output tokens of a coarse form of an image, which a stream may have before it is done. */
export const TOKENS_PER_PARTIAL_IMAGE = 100

/** The most output tokens of one image, for a model without a value in the catalogue. */
export const MAX_TOKENS_PER_IMAGE = 6240

/**
 * Reads a complete OpenAI-style answer with images. It counts the images in the answer, not those that were asked for.
 * Throws SyntaxError if it is no such answer.
 */
export function readImageAnswer(json: unknown): AnswerReading {
  const answer = isJsonObject(json) ? json : {}
  if (!Array.isArray(answer.data)) throw new SyntaxError('the answer has no "data"')
  const data = objectsIn(answer.data)
  const images = data.filter(({ b64_json, url }) => nonEmptyString(b64_json) ?? nonEmptyString(url)).length
  return {
    // In a series of Ark's an image that was not made has an error in its place.
    error: images > 0 ? undefined : data.findLast(({ error }) => error)?.error,
    substance: images > 0 ? 'output' : 'empty',
    usage: { ...readImageUsage(answer.usage), images },
    estimateOutput: () => images * tokensPerImage(answer),
  }
}

export function readImageUsage(usage: unknown): ReportedUsage {
  if (!isJsonObject(usage)) return {}
  const details = isJsonObject(usage.input_tokens_details) ? usage.input_tokens_details : {}
  return {
    inputTokens: tokenCount(usage.input_tokens) ?? tokenCount(usage.prompt_tokens),
    cachedInputTokens: tokenCount(details.cached_tokens),
    outputTokens: tokenCount(usage.output_tokens) ?? tokenCount(usage.completion_tokens),
  }
}

/** Returns the estimated output tokens of one image. */
export function tokensPerImage({ quality, size }: JsonObject): number {
  const square = TOKENS_BY_QUALITY.get(quality) ?? TOKENS_OF_UNKNOWN_QUALITY
  return size === undefined || size === '1024x1024' ? square : square * 1.5
}
