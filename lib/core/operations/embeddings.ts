import { z } from 'zod'
import { isJsonObject, objectsIn, tokenCount } from '../json/index.ts'
import { checkedWith } from './body/body-schema.ts'
import { providerConstraintSchema } from './body/provider-constraint.ts'
import { renamedBody } from './body/upstream-body.ts'
import { prefixOf, sizeOf, textOrTokens } from './metering/text-or-tokens.ts'
import {
  type AnswerReading,
  type Operation,
  plainFacts,
  type RequestFacts,
  type TokenEstimator,
} from './operation.ts'

/** Members that are passed on. */
const passedOn = z.looseObject({
  dimensions: z.int().nullish(),
  encoding_format: z.string().nullish(),
  user: z.string().nullish(),
})

/** The members of an embedding request that the gateway reads; unknown members pass through unchanged. */
const judged = z.looseObject({
  model: z.string().min(1),
  input: textOrTokens,
  stream: z.boolean().nullish(),
  provider: providerConstraintSchema.nullish(),
})

const schema = checkedWith(judged, passedOn)

type EmbeddingBody = z.output<typeof judged>

/** OpenAI-style embedding of texts: `POST /v1/embeddings`. */
export const embeddings: Operation = {
  name: 'embeddings',
  kind: 'embedding',
  priceUnit: 'input',
  protocol: 'openai',
  path: '/v1/embeddings',
  upstreamPath: '/embeddings',
  schema,
  facts: (json, _raw, estimate) => embeddingFacts(json as EmbeddingBody, estimate),
  promptPrefix: (json) => prefixOf((json as EmbeddingBody).input),
  upstreamBody: (raw, json, { model }) => renamedBody(raw, json, model),
  readAnswer: readEmbeddingAnswer,
  answersData: true,
}

function embeddingFacts({ model, input, stream }: EmbeddingBody, estimate: TokenEstimator): RequestFacts {
  const { tokens, longest } = sizeOf(input, estimate)
  return {
    model,
    ...plainFacts(stream),
    estimatedInputTokens: tokens,
    // Each text must fit into the window on its own.
    windowTokens: longest,
  }
}

/**
 * Reads a complete OpenAI-style list of embeddings. A list that lacks a vector counts as empty, because callers rely on
 * its order. Throws SyntaxError if there is no list.
 */
function readEmbeddingAnswer(json: unknown): AnswerReading {
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
