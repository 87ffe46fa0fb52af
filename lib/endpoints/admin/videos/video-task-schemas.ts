import { z } from 'zod'
import { positiveAmount } from '../accounts/account-schemas.ts'
import { accountPageQuery } from '../page-query.ts'
import { VIDEO_TASK_STATES } from './video-tasks-view.ts'

const MAX_USED = 1_000_000_000

/** The usage of a video; at least one member is required. */
const usage = z
  .strictObject({
    seconds: z.number().positive().max(MAX_USED).optional(),
    tokens: z.int().positive().max(MAX_USED).optional(),
  })
  .refine(({ seconds, tokens }) => seconds !== undefined || tokens !== undefined, {
    error: 'must have "seconds", "tokens" or both',
  })

/** The body of `POST /video-tasks/{id}/resolve`. */
export const resolutionSchema = z.discriminatedUnion(
  'outcome',
  [
    z.strictObject({ outcome: z.literal('released') }),
    z
      .strictObject({
        outcome: z.literal('charged'),
        amount: positiveAmount.optional(),
        usage: usage.optional(),
      })
      .refine((body) => (body.amount === undefined) !== (body.usage === undefined), {
        path: ['amount'],
        error: 'a task is charged either by "amount" or by "usage"; send one of them',
      }),
  ],
  { error: 'must be "charged" or "released"' },
)

export const videoTaskQuery = accountPageQuery.extend({
  state: z.enum(VIDEO_TASK_STATES, `must be one of ${VIDEO_TASK_STATES.join(', ')}`).optional(),
})
