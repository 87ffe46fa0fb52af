import { isJsonObject, type JsonObject, objectsOf } from './body/json-object.ts'
import type { AnswerReading, ReportedUsage } from './operation.ts'
import { tokenCount } from './tokens/token-count.ts'

/** Output tokens of one square image of 1024 × 1024, as OpenAI's models count them; one of the other sizes is 1.5 of it. */
const TOKENS_BY_QUALITY: ReadonlyMap<unknown, number> = new Map([
  ['low', 272],
  ['medium', 1056],
  ['high', 4160],
])
const TOKENS_OF_UNKNOWN_QUALITY = 1056

/** The most output tokens that one image is counted as, where the catalogue says nothing else of the model. */
export const MOST_TOKENS_PER_IMAGE = 6240

/**
 * Reads a whole OpenAI-style answer with images. What is delivered counts, not what was asked for. Throws SyntaxError
 * when it is no such answer.
 */
export function readImageAnswer(json: unknown): AnswerReading {
  const answer = isJsonObject(json) ? json : {}
  const items = objectsOf(answer.data)
  if (!items) throw new SyntaxError('the answer has no "data"')
  const images = items.filter(({ b64_json, url }) => isText(b64_json) || isText(url)).length
  return {
    substance: images > 0 ? 'output' : 'empty',
    usage: { ...readImageUsage(answer.usage), images },
    estimateOutput: () => images * tokensPerImage(answer),
  }
}

function readImageUsage(usage: unknown): ReportedUsage {
  if (!isJsonObject(usage)) return {}
  const details = isJsonObject(usage.input_tokens_details) ? usage.input_tokens_details : {}
  return {
    inputTokens: tokenCount(usage.input_tokens) ?? tokenCount(usage.prompt_tokens),
    cachedInputTokens: tokenCount(details.cached_tokens),
    outputTokens: tokenCount(usage.output_tokens) ?? tokenCount(usage.completion_tokens),
  }
}

function tokensPerImage({ quality, size }: JsonObject): number {
  const square = TOKENS_BY_QUALITY.get(quality) ?? TOKENS_OF_UNKNOWN_QUALITY
  return size === undefined || size === '1024x1024' ? square : square * 1.5
}

const isText = (value: unknown): boolean => typeof value === 'string' && value !== ''
