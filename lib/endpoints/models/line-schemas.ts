import { z } from 'zod'
import type { LineFigures, LineOutline } from '../../routing/lines/line-status.ts'

/** The members of a line that callers see. */
export const lineOutline = z.strictObject({
  id: z.string(),
  provider: z.string(),
  protocol: z.string(),
  region: z.string().nullable(),
  enabled: z.boolean(),
  priority: z.number(),
  weight: z.number(),
  circuit: z.enum(['closed', 'open', 'half_open']),
}) satisfies z.ZodType<LineOutline>

/** The figures of a line that change by themselves. */
export const runtimeFigures = z.strictObject({
  availability: z
    .enum(['up', 'down', 'unknown'])
    .describe('down: no call succeeds on its models in use. unknown: too few recent calls.'),
  circuit: lineOutline.shape.circuit,
  retry_after_ms: z.number().nullable(),
  rest_ms: z.number(),
  in_flight: z.int(),
  first_byte_ms: z.number().nullable(),
  tokens_per_second: z.number().nullable(),
  recent_attempts: z.int().describe('In the last minute.'),
  recent_failures: z.int(),
  error_share: z.number().nullable().describe('Share of the attempts in the last minute.'),
  rests: z
    .array(z.strictObject({ model: z.string().nullable(), rest_ms: z.number() }))
    .describe('Models that rest after a 429; null: requests that name no model.'),
  circuits: z
    .array(
      z.strictObject({
        scope: z.enum(['line', 'model']),
        model: z.string().nullable(),
        state: z.enum(['open', 'half_open']),
        account: z.string().nullable().describe('The only account that it is open for. null: for all.'),
        retry_after_ms: z.number().nullable(),
      }),
    )
    .describe('Circuits that are not closed.'),
})

/** The members of a line that operators see. */
export const lineFigures = lineOutline.extend(runtimeFigures.shape) satisfies z.ZodType<LineFigures>
