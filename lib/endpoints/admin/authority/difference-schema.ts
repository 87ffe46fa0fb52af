import { z } from 'zod'

/** A row of `GET /drift`. */
export const difference = z.strictObject({
  object: z.literal('difference'),
  kind: z.enum(['account', 'key']),
  id: z.string(),
  difference: z
    .enum(['changed', 'missing', 'not_in_config'])
    .describe('missing: the config names it, the database does not have it.'),
  members: z.array(z.string()).describe('The members of the config that differ; never their values.'),
})
