import { isJsonObject, objectsIn, tokenCount } from '../json/index.ts'
import type { AnswerReading } from './operation.ts'

/**
 * Reads a complete OpenAI-style list of embeddings. A list that lacks a vector counts as empty, because callers rely on
 * its order. Throws SyntaxError if there is no list.
 */
export function readEmbeddingAnswer(json: unknown): AnswerReading {
  const answer = isJsonObject(json) ? json : {}
  if (!Array.isArray(answer.data)) throw new SyntaxError('the answer has no "data"')
  const items = objectsIn(answer.data)
  const usage = isJsonObject(answer.usage) ? answer.usage : {}
  return {
    substance: items.length > 0 && items.every(hasVector) ? 'output' : 'empty',
    usage: {
      // Some upstreams report only the total, which is all input.
      inputTokens: tokenCount(usage.prompt_tokens) ?? tokenCount(usage.total_tokens),
      outputTokens: 0,
    },
    estimateOutput: () => 0,
  }
}

/** Whether an item has a vector: a list of numbers, or the same in base64. */
function hasVector({ embedding }: { readonly embedding?: unknown }): boolean {
  return (typeof embedding === 'string' || Array.isArray(embedding)) && embedding.length > 0
}
