import { z } from 'zod'
import type { Answer } from './endpoint.ts'

const amount = z.string().describe('A decimal string.')

const usageRow = z
  .looseObject({
    requests: z.int(),
    refused: z.int(),
    failed: z.int(),
    input_tokens: z.int(),
    cached_input_tokens: z.int(),
    output_tokens: z.int(),
    images: z.int(),
    seconds: z.number().describe('Of video.'),
    charged: amount,
    cost: amount.optional(),
    p50_ms: z.number().nullable().describe('Interpolated.'),
    p95_ms: z.number().nullable(),
  })
  .describe('The groups are members of their names.')

const usageList = z.strictObject({
  object: z.literal('list'),
  from: z.iso.datetime(),
  to: z.iso.datetime(),
  data: z.array(usageRow),
  next_cursor: z.string().nullable(),
})

export const USAGE_ANSWERS: readonly Answer[] = [
  {
    status: 200,
    description: 'A list; with `format=csv` a table, whose `next_cursor` is the header `X-Next-Cursor`.',
    schema: ['UsageList', usageList],
    media: ['application/json', 'text/csv'],
  },
]
