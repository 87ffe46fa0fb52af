import { z } from 'zod'
import { providerConstraintSchema } from './body/provider-constraint.ts'
import { renamedBody } from './body/upstream-body.ts'
import { readEmbeddingAnswer } from './embeddings-answer.ts'
import type { Operation, RequestFacts, TokenEstimator } from './operation.ts'
import { plainFacts } from './plain-facts.ts'
import { prefixOf, sizeOf, textOrTokens } from './tokens/text-or-tokens.ts'

/** The members of an embedding request that the gateway reads; unknown members pass through unchanged. */
const schema = z.looseObject({
  model: z.string().min(1),
  input: textOrTokens,
  stream: z.boolean().nullish(),
  provider: providerConstraintSchema.nullish(),
})

type EmbeddingBody = z.output<typeof schema>

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
