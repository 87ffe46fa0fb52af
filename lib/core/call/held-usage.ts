import { MAX_TOKENS_PER_IMAGE } from '../operations/images-answer.ts'
import type { CallRequest } from './parts.ts'

/** The factor by which the input may exceed its estimate. */
const INPUT_MARGIN = 1.25

/** The output assumed if neither the request nor the catalogue limits it. */
const UNBOUNDED_OUTPUT_TOKENS = 32_768

/** Returns the input tokens that a call's reservation covers. */
export function heldInput({ estimatedInputTokens }: Pick<CallRequest, 'estimatedInputTokens'>): number {
  return Math.ceil(INPUT_MARGIN * estimatedInputTokens)
}

/** Returns the output tokens that a call's reservation covers: those of all answers, or of all images. */
export function heldOutput({ operation, answers, units, maxOutputTokens, model }: CallRequest): number {
  if (operation.priceUnit === 'images') return units * (model.maxOutputTokens ?? MAX_TOKENS_PER_IMAGE)
  if (operation.priceUnit !== 'tokens') return 0
  return (
    answers * (maxOutputTokens ?? model.maxOutputTokens ?? model.contextWindow ?? UNBOUNDED_OUTPUT_TOKENS)
  )
}
