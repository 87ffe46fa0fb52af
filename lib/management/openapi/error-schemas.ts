import { z } from 'zod'

/** The OpenAI-style error envelope; task-style video has it too. */
export const errorEnvelope = z.strictObject({
  error: z.looseObject({
    message: z.string(),
    type: z.string(),
    code: z.string(),
    param: z.string().optional(),
    details: z
      .strictObject({ original_request_id: z.string() })
      .optional()
      .describe('With `idempotency_key_replayed`: the call that ran.'),
  }),
  request_id: z.string(),
})

/** The Anthropic-style error envelope. */
export const anthropicErrorEnvelope = z.strictObject({
  type: z.literal('error'),
  error: z.strictObject({
    type: z.string(),
    message: z.string(),
    details: z
      .strictObject({ error_code: z.string(), unsupported: z.array(z.string()).optional() })
      .optional()
      .describe("Why a thread cannot go on, for Anthropic's SDK."),
  }),
  request_id: z.string(),
})
