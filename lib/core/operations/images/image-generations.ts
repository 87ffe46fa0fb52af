import { z } from 'zod'
import { checkedWith } from '../body/body-schema.ts'
import { providerConstraintSchema } from '../body/provider-constraint.ts'
import { renamedBody } from '../body/upstream-body.ts'
import {
  PREFIX_CHARS,
  plainFacts,
  type RequestFacts,
  type StreamingOperation,
  type TokenEstimator,
} from '../operation.ts'
import { readImageAnswer } from './images-answer.ts'
import { ImageStreamReader } from './images-stream.ts'

/** Members that are passed on. */
const passedOn = z.looseObject({
  size: z.string().nullish(),
  quality: z.string().nullish(),
  style: z.string().nullish(),
  background: z.string().nullish(),
  output_format: z.string().nullish(),
  response_format: z.string().nullish(),
  user: z.string().nullish(),
})

/** The members of an image request that the gateway reads; unknown members pass through unchanged. */
const judged = z.looseObject({
  model: z.string().min(1),
  prompt: z.string().min(1),
  n: z.int().min(1).max(128).nullish(),
  sequential_image_generation: z.string().nullish(),
  sequential_image_generation_options: z
    .looseObject({ max_images: z.int().min(1).max(128).nullish() })
    .nullish(),
  stream: z.boolean().nullish(),
  provider: providerConstraintSchema.nullish(),
})

const schema = checkedWith(judged, passedOn)

type ImagesBody = z.output<typeof judged>

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

/** The most images of a series, for a request without a maximum. */
const MAX_SERIES = 15

/** Returns the most images that can be made. Ark makes a series if asked, of as many images as fit the prompt. */
function imagesAsked(body: ImagesBody): number {
  const { n, sequential_image_generation: series, sequential_image_generation_options: options } = body
  return series === 'auto' ? (options?.max_images ?? MAX_SERIES) : (n ?? 1)
}

function imageFacts(body: ImagesBody, estimate: TokenEstimator): RequestFacts {
  const { model, prompt, stream } = body
  const most = imagesAsked(body)
  return {
    model,
    ...plainFacts(stream),
    estimatedInputTokens: estimate(prompt),
    answers: most,
    units: most,
  }
}
