import { z } from 'zod'
import { isJsonObject, objectsIn, tokenCount } from '../json/index.ts'
import { checkedWith, texts } from './body/body-schema.ts'
import { providerConstraintSchema } from './body/provider-constraint.ts'
import { renamedBody } from './body/upstream-body.ts'
import { jsonText } from './metering/token-estimate.ts'
import {
  type AnswerReading,
  type Operation,
  PREFIX_CHARS,
  plainFacts,
  type ReportedUsage,
  type RequestFacts,
  type TokenEstimator,
} from './operation.ts'

/** The number of documents in one search, as hosted rerankers count. */
const DOCUMENTS_PER_SEARCH = 100
/** The number of tokens, those of the query included, beyond which a document counts as several. */
const TOKENS_PER_DOCUMENT = 500

type Document = string | Readonly<Record<string, unknown>>

/** Documents are checked in a loop instead of by a schema each: there may be hundreds of thousands. */
const documents = z
  .custom<readonly Document[]>(Array.isArray, { error: 'must be a list' })
  .superRefine((list, context) => {
    if (list.length === 0) context.addIssue({ code: 'custom', message: 'must not be empty' })
    const at = list.findIndex((item) => typeof item !== 'string' && !isJsonObject(item))
    if (at >= 0) context.addIssue({ code: 'custom', message: 'must be a string or an object', path: [at] })
    const textAt = list.findIndex(hasOtherText)
    if (textAt >= 0) context.addIssue({ code: 'custom', message: 'must be a string', path: [textAt, 'text'] })
  })

/** Whether the text of a document has a wrong type. A document without a text has other fields. */
function hasOtherText(item: Document): boolean {
  return isJsonObject(item) && typeof (item.text ?? '') !== 'string'
}

/** Members of some rerankers that are passed on, and that the gateway does not judge a request by. */
const passedOn = z.looseObject({
  top_k: z.int().nullish(),
  return_documents: z.boolean().nullish(),
  rank_fields: texts.nullish(),
  max_tokens_per_doc: z.int().nullish(),
  max_chunks_per_doc: z.int().nullish(),
  truncation: z.boolean().nullish(),
  instruction: z.string().nullish(),
  user: z.string().nullish(),
})

/** The members of a rerank request that the gateway reads; unknown members pass through unchanged. */
const judged = z.looseObject({
  model: z.string().min(1),
  query: z.string().min(1),
  documents,
  top_n: z.int().min(1).nullish(),
  stream: z.boolean().nullish(),
  provider: providerConstraintSchema.nullish(),
})

const schema = checkedWith(judged, passedOn)

type RerankBody = z.output<typeof judged>

/** Sorts documents by their relevance to a query: `POST /v1/rerank`, in the form that hosted rerankers share. */
export const rerank: Operation = {
  name: 'rerank',
  kind: 'rerank',
  priceUnit: 'searches',
  protocol: 'openai',
  path: '/v1/rerank',
  upstreamPath: '/rerank',
  schema,
  facts: (json, _raw, estimate) => rerankFacts(json as RerankBody, estimate),
  promptPrefix: (json) => (json as RerankBody).query.slice(0, PREFIX_CHARS),
  upstreamBody: (raw, json, { model }) => renamedBody(raw, json, model),
  readAnswer: readRerankAnswer,
}

function rerankFacts(
  { model, query, documents, stream }: RerankBody,
  estimate: TokenEstimator,
): RequestFacts {
  const queryTokens = estimate(query)
  let tokens = 0
  let longest = 0
  let counted = 0
  for (const item of documents) {
    // The query is read with each document.
    const pair = queryTokens + estimate(typeof item === 'string' ? item : documentText(item))
    tokens += pair
    longest = Math.max(longest, pair)
    counted += Math.max(1, Math.ceil(pair / TOKENS_PER_DOCUMENT))
  }
  return {
    model,
    ...plainFacts(stream),
    estimatedInputTokens: tokens,
    windowTokens: longest,
    units: Math.ceil(counted / DOCUMENTS_PER_SEARCH),
  }
}

/** Returns the part of a document with fields that a model reads: its text, else the whole document. */
function documentText(item: Readonly<Record<string, unknown>>): string {
  return typeof item.text === 'string' ? item.text : jsonText(item)
}

/** Reads a complete list of reranked documents, under either of its two names. Throws SyntaxError if there is none. */
function readRerankAnswer(json: unknown): AnswerReading {
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
