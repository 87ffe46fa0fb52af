import { z } from 'zod'
import type { Feature } from '../../catalog/index.ts'
import { providerConstraintSchema } from '../body/provider-constraint.ts'
import { FormFile, renamedBody } from '../body/upstream-body.ts'
import { TOKENS_PER_IMAGE, TOKENS_PER_REQUEST } from '../metering/token-estimate.ts'
import {
  type AnswerReading,
  featuresOf,
  type Operation,
  PREFIX_CHARS,
  plainFacts,
  type RequestFacts,
  type TokenEstimator,
} from '../operation.ts'

const DEFAULT_SECONDS = 4

const seconds = z
  .union([z.int().min(1).max(3600), z.string().regex(/^[1-9]\d{0,2}$/)], {
    error: 'must be a whole number of seconds, such as "8"',
  })
  .nullish()
const size = z
  .string()
  .regex(/^[1-9]\d{1,4}x[1-9]\d{1,4}$/, 'must be width and height, such as "1280x720"')
  .nullish()
const inputReference = z.union(
  [
    z.instanceof(FormFile).meta({ type: 'string', format: 'binary' }),
    z
      .looseObject({ image_url: z.string().min(1).optional(), file_id: z.string().min(1).optional() })
      .refine(({ image_url: url, file_id: id }) => (url === undefined) !== (id === undefined)),
  ],
  { error: 'must be a file, or an object with either image_url or file_id' },
)

/**
 * The members of a video request that the gateway reads; unknown members pass through unchanged to a line of the same
 * protocol.
 */
const schema = z.looseObject({
  model: z.string().min(1),
  prompt: z.string().min(1),
  seconds,
  size,
  input_reference: inputReference.nullish(),
  user: z.string().nullish(),
  provider: providerConstraintSchema.nullish(),
})

/** The body of `POST /v1/videos`. */
export type VideoBody = z.output<typeof schema>

/** OpenAI-style video: `POST /v1/videos`, as JSON or as a form. */
export const videos: Operation = {
  name: 'videos',
  kind: 'video',
  priceUnit: 'seconds',
  protocol: 'openai',
  path: '/v1/videos',
  upstreamPath: '/videos',
  acceptsForms: true,
  schema,
  facts: (json, _raw, estimate) => videoFacts(json as VideoBody, estimate),
  promptPrefix: (json) => (json as VideoBody).prompt.slice(0, PREFIX_CHARS),
  upstreamBody: (raw, json, { model }) => renamedBody(raw, json, model),
  readAnswer: readCreated,
}

/** The source of a remix. */
export interface RemixSource {
  /** The gateway's id of the video. */
  readonly id: string
  /** The model of the video and of the remix. */
  readonly model: string
  /** The length of the video and of the remix. */
  readonly seconds: number
}

const remixSchema = z.looseObject({ prompt: z.string().min(1) })

/** Returns the operation of `POST /v1/videos/{id}/remix` for one video. Its body names no model. */
export function remixOf({ id, model, seconds }: RemixSource): Operation {
  const path = `/videos/${id}/remix`
  return {
    ...videos,
    name: 'videos.remix',
    path: `/v1${path}`,
    upstreamPath: path,
    endpoint: 'videos',
    schema: remixSchema,
    facts: ({ prompt }, _raw, estimate) => videoFacts({ model, prompt: String(prompt), seconds }, estimate),
  }
}

function videoFacts(body: VideoBody, estimate: TokenEstimator): RequestFacts {
  const featureParams = new Map<Feature, string>()
  const images = body.input_reference ? 1 : 0
  if (images > 0) featureParams.set('vision', 'input_reference')
  return {
    model: body.model,
    ...plainFacts(false),
    features: featuresOf(featureParams),
    featureParams,
    estimatedInputTokens: TOKENS_PER_REQUEST + estimate(body.prompt) + images * TOKENS_PER_IMAGE,
    units: Number(body.seconds ?? DEFAULT_SECONDS),
    images,
  }
}

/** Reads the answer to a create. It contains the id only, and nothing has been used yet. */
export function readCreated(json: unknown): AnswerReading {
  if (typeof json !== 'object' || json === null || !('id' in json) || typeof json.id !== 'string')
    throw new SyntaxError('the answer to a create names no task')
  return { substance: 'output', usage: {}, estimateOutput: () => 0 }
}
