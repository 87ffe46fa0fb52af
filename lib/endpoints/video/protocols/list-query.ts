import { z } from 'zod'

const MAX_LISTED = 100
const MAX_PAGE = 10_000

/** A text that all databases can store. */
const plain = (most: number) =>
  z
    .string()
    .max(most, `must be at most ${most} characters long`)
    .refine((text) => !text.includes('\0'), 'must be plain text')

const whole = (most: number) =>
  z
    .string()
    .regex(/^\d{1,6}$/, `must be a whole number from 1 to ${most}`)
    .transform(Number)
    .refine((count) => count >= 1 && count <= most, `must be a whole number from 1 to ${most}`)

/** The query of `GET /v1/videos`. */
export const videoList = z.strictObject({
  limit: whole(MAX_LISTED).default(20),
  after: plain(100).optional(),
  order: z.enum(['asc', 'desc'], 'must be "asc" or "desc"').default('desc'),
})

/** The query of `GET /api/v3/contents/generations/tasks`. */
export const taskList = z.strictObject({
  page_num: whole(MAX_PAGE).default(1),
  page_size: whole(500).default(20),
  'filter.status': z.enum(['queued', 'running', 'succeeded', 'failed', 'cancelled']).optional(),
  'filter.model': plain(1000).optional(),
  'filter.task_ids': z
    .union([plain(10_000), z.array(plain(10_000)).max(MAX_LISTED)])
    .transform((ids) => [ids].flat().flatMap((text) => text.split(',')))
    .refine((ids) => ids.length <= MAX_LISTED, `must be at most ${MAX_LISTED} ids`)
    .optional(),
})
