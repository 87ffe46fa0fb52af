import { isJsonObject, objectsOf } from './body/json-object.ts'
import type { AnswerReading } from './operation.ts'
import { tokenCount } from './tokens/token-count.ts'

/**
 * Reads a whole OpenAI-style list of embeddings. One that lacks a vector is no answer: callers go by its order. Throws
 * SyntaxError when it is none at all.
 */
export function readEmbeddingAnswer(json: unknown): AnswerReading {
  const answer = isJsonObject(json) ? json : {}
  const items = objectsOf(answer.data)
  if (!items) throw new SyntaxError('the answer has no "data"')
  const usage = isJsonObject(answer.usage) ? answer.usage : {}
  return {
    substance: items.length > 0 && items.every(hasVector) ? 'output' : 'empty',
    usage: {
      // Some upstreams name only the total, which is all input.
      inputTokens: tokenCount(usage.prompt_tokens) ?? tokenCount(usage.total_tokens),
      outputTokens: 0,
    },
    estimateOutput: () => 0,
  }
}

/** A list of numbers, or the same in base64. */
function hasVector({ embedding }: { readonly embedding?: unknown }): boolean {
  return (typeof embedding === 'string' || Array.isArray(embedding)) && embedding.length > 0
}
