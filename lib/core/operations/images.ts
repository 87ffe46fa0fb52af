import { z } from 'zod'
import { providerConstraintSchema } from './body/provider-constraint.ts'
import { renamedBody } from './body/upstream-body.ts'
import { streamFeature } from './chat/stream-feature.ts'
import { readImageAnswer } from './images-answer.ts'
import { ImageStreamReader } from './images-stream.ts'
import type { RequestFacts, StreamingOperation, TokenEstimator } from './operation.ts'

/** The members of an image request that the gateway reads; unknown members pass through unchanged. */
const schema = z.looseObject({
  model: z.string().min(1),
  prompt: z.string().min(1),
  n: z.int().min(1).max(128).nullish(),
  stream: z.boolean().nullish(),
  provider: providerConstraintSchema.nullish(),
})

type ImagesBody = z.output<typeof schema>

/** OpenAI-style generation of images: `POST /v1/images/generations`. */
export const imageGenerations: StreamingOperation = {
  name: 'images.generations',
  kind: 'image',
  priceUnit: 'images',
  protocol: 'openai',
  path: '/v1/images/generations',
  upstreamPath: '/images/generations',
  schema,
  facts: (json, _raw, estimate) => imageFacts(json as ImagesBody, estimate),
  promptPrefix: (json) => (json as ImagesBody).prompt.slice(0, PREFIX_CHARS),
  upstreamBody: (raw, json, { model }) => renamedBody(raw, json, model),
  readAnswer: readImageAnswer,
  answersData: true,
  // An image stream ends with its last image.
  streamTerminator: '',
  streamReader: ({ answers }) => new ImageStreamReader(answers),
}

const PREFIX_CHARS = 1024

function imageFacts({ model, prompt, n, stream }: ImagesBody, estimate: TokenEstimator): RequestFacts {
  return {
    model,
    ...streamFeature(stream),
    estimatedInputTokens: estimate(prompt),
    maxOutputTokens: undefined,
    answers: n ?? 1,
    units: n ?? 1,
    messages: 0,
    tools: 0,
    images: 0,
  }
}
