import { z } from 'zod'
import { listOf } from '../body/body-schema.ts'
import { providerConstraintSchema } from '../body/provider-constraint.ts'
import { FormFile } from '../body/upstream-body.ts'
import { TOKENS_PER_IMAGE } from '../metering/token-estimate.ts'
import { plainFacts, type RequestFacts, type StreamingOperation, type TokenEstimator } from '../operation.ts'
import { imageGenerations } from './image-generations.ts'

/** The tokens that an input image of any size adds if the model looks at it closely. */
const TOKENS_OF_HIGH_FIDELITY = 6240

const file = z.instanceof(FormFile).meta({ type: 'string', format: 'binary' })
/** The upstream checks objects. A resource that they name is looked up like any reference. */
const picture = z.union([file, z.looseObject({})], {
  error: 'must be a file, or an object with image_url or file_id',
})
const pictures = z.union([picture, listOf(picture, 1)], {
  error: 'must be a file or a list of files, or objects with image_url or file_id',
})

/**
 * The members of a request for edits that the gateway reads; unknown members pass through unchanged. The fields of a form
 * are texts.
 */
const schema = z
  .looseObject({
    model: z.string().min(1),
    prompt: z.string().min(1),
    image: pictures.nullish(),
    images: pictures.nullish(),
    mask: picture.nullish(),
    n: z
      .union([z.int().min(1).max(128), z.string().regex(/^(?:[1-9]\d?|1[01]\d|12[0-8])$/)], {
        error: 'must be a whole number from 1 to 128',
      })
      .nullish(),
    stream: z.union([z.boolean(), z.enum(['true', 'false'])], { error: 'must be true or false' }).nullish(),
    provider: providerConstraintSchema.nullish(),
  })
  .refine(({ image, images }) => (image ?? images ?? null) !== null, {
    path: ['image'],
    error: 'must be given: the image to edit',
  })

type EditsBody = z.output<typeof schema>

/** OpenAI-style editing of images: `POST /v1/images/edits`, as a form or as JSON. */
export const imageEdits: StreamingOperation = {
  ...imageGenerations,
  name: 'images.edits',
  path: '/v1/images/edits',
  upstreamPath: '/images/edits',
  acceptsForms: true,
  schema,
  facts: (json, _raw, estimate) => editFacts(json as EditsBody, estimate),
}

function editFacts(body: EditsBody, estimate: TokenEstimator): RequestFacts {
  const given = [body.image, body.images, body.mask].flat().filter((each) => (each ?? null) !== null)
  const perImage = TOKENS_PER_IMAGE + (body.input_fidelity === 'high' ? TOKENS_OF_HIGH_FIDELITY : 0)
  const promptTokens = estimate(body.prompt)
  const answers = Number(body.n ?? 1)
  return {
    model: body.model,
    ...plainFacts(body.stream === true || body.stream === 'true'),
    estimatedInputTokens: promptTokens + given.length * perImage,
    // The tokens of the images are too rough an estimate to refuse by.
    windowTokens: promptTokens,
    answers,
    units: answers,
    images: given.length,
  }
}
