import { z } from 'zod'
import { listOf } from './body-schema.ts'

/** The most models that one request may name. */
const MAX_MODELS = 10

/** The models that may serve a request after `model`, in their order, as OpenRouter has them. */
export const furtherModels = listOf(z.string().min(1), 0, MAX_MODELS)
