import { z } from 'zod'
import { listOf } from '../body/list-of.ts'
import { providerConstraintSchema } from '../body/provider-constraint.ts'

const part = z.looseObject({ type: z.string(), text: z.string().nullish() })

/** Parts of a message, the output of a function call, or a screenshot. */
const content = z.union([z.string(), listOf(part)], { error: 'must be a string or a list of content parts' })

/** An item of the input. An item without a type is a message. */
const item = z.looseObject({
  type: z.string().nullish(),
  role: z.enum(['user', 'assistant', 'system', 'developer']).nullish(),
  content: content.nullish(),
})

/** The members of a response request that the gateway reads; unknown members pass through unchanged. */
export const responsesSchema = z
  .looseObject({
    model: z.string().min(1),
    input: z.union([z.string(), listOf(item)], { error: 'must be a string or a list of items' }).nullish(),
    instructions: z.union([z.string(), listOf(item)], { error: 'must be a string' }).nullish(),
    previous_response_id: z.string().min(1).max(1024).nullish(),
    stream: z.boolean().nullish(),
    store: z.boolean().nullish(),
    background: z.boolean().nullish(),
    conversation: z.unknown().optional(),
    prompt: z.unknown().optional(),
    prediction: z.unknown().optional(),
    max_output_tokens: z.int().min(1).nullish(),
    temperature: z.number().min(0).max(2).nullish(),
    top_p: z.number().min(0).max(1).nullish(),
    tools: listOf(z.looseObject({ type: z.string() })).nullish(),
    truncation: z.string().nullish(),
    text: z.looseObject({ format: z.looseObject({ type: z.string() }).nullish() }).nullish(),
    reasoning: z.looseObject({ effort: z.string().nullish(), summary: z.string().nullish() }).nullish(),
    provider: providerConstraintSchema.nullish(),
  })
  .refine(({ input, previous_response_id: previous }) => (input ?? previous) != null, {
    path: ['input'],
    error: 'is needed, or "previous_response_id"',
  })

export type ResponsesBody = z.output<typeof responsesSchema>

export type ResponsesItem = z.output<typeof item>
