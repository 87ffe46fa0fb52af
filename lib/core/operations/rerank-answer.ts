import { isJsonObject, objectsIn, tokenCount } from '../json/index.ts'
import type { AnswerReading, ReportedUsage } from './operation.ts'

/** Reads a complete list of reranked documents, under either of its two names. Throws SyntaxError if there is none. */
export function readRerankAnswer(json: unknown): AnswerReading {
  const answer = isJsonObject(json) ? json : {}
  const results = Array.isArray(answer.results) ? answer.results : answer.data
  if (!Array.isArray(results)) throw new SyntaxError('the answer has no "results"')
  return {
    substance: objectsIn(results).length > 0 ? 'output' : 'empty',
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
