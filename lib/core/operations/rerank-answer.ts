import { isJsonObject, objectsOf } from './body/json-object.ts'
import type { AnswerReading, ReportedUsage } from './operation.ts'
import { tokenCount } from './tokens/token-count.ts'

/**
 * Reads a whole list of reranked documents, whichever of the two names it has. Throws SyntaxError when there is none.
 */
export function readRerankAnswer(json: unknown): AnswerReading {
  const answer = isJsonObject(json) ? json : {}
  const results = objectsOf(answer.results) ?? objectsOf(answer.data)
  if (!results) throw new SyntaxError('the answer has no "results"')
  return {
    substance: results.length > 0 ? 'output' : 'empty',
    usage: { ...readRerankUsage(answer), outputTokens: 0 },
    estimateOutput: () => 0,
  }
}

/** Rerankers report searches under `meta`, or tokens under `usage`; some report both. */
function readRerankUsage({ usage, meta }: Readonly<Record<string, unknown>>): ReportedUsage {
  const counts = isJsonObject(usage) ? usage : {}
  const { billed_units, tokens } = isJsonObject(meta) ? meta : {}
  const billed = isJsonObject(billed_units) ? billed_units : {}
  const read = isJsonObject(tokens) ? tokens : {}
  return {
    searchUnits: tokenCount(billed.search_units) ?? tokenCount(counts.search_units),
    inputTokens:
      tokenCount(counts.prompt_tokens) ??
      tokenCount(counts.total_tokens) ??
      tokenCount(billed.input_tokens) ??
      tokenCount(read.input_tokens),
  }
}
