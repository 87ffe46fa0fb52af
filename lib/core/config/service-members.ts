import { z } from 'zod'
import { metricLabelsFault } from '../catalog/index.ts'

const UNIT_MS = { h: 3_600_000, d: 86_400_000, mo: 31 * 86_400_000, y: 366 * 86_400_000 } as const

/** A time such as "30d", in milliseconds. A month has 31 days, and a year 366, so that nothing is deleted too early. */
const period = z
  .string()
  .regex(/^[1-9]\d{0,3}(h|d|mo|y)$/, 'must be a number and one of h, d, mo, y, such as "30d"')
  .transform((text) => Number.parseInt(text, 10) * UNIT_MS[text.replace(/\d/g, '') as keyof typeof UNIT_MS])

/** As long as `SqlRetention` needs them. */
const MIN_CHARGES_MS = UNIT_MS.mo

const AS_SENT = 'must be an origin as browsers send it, such as "https://app.example.com", or "*"'

/** Origins are compared as texts: one in capitals or with the usual port would never match. */
function isAsSent(origin: string): boolean {
  return origin === '*' || URL.parse(origin)?.origin === origin
}

const signingSecret = z.string().min(16)

/** The members of the config about what the gateway keeps, counts, signs and lets pages do. */
export const serviceMembers = {
  retention: z
    .strictObject({
      calls: period.prefault('30d').describe('How long the call log keeps an entry.'),
      charges: period
        .refine((ms) => ms >= MIN_CHARGES_MS, 'must be at least "1mo"')
        .optional()
        .describe('How long charges are kept. Absent: for ever.'),
      export: z
        .strictObject({
          to: z
            .string()
            .regex(
              /^(file:.|s3:\/\/[a-z\d][a-z\d.-]+(\/|$))/,
              'must be "file:" and the path of a folder, or "s3://BUCKET/PREFIX"',
            )
            .describe('The folder, or the bucket and what the names in it begin with.'),
          endpoint: z
            .url({ protocol: /^https?$/ })
            .optional()
            .describe('A service other than Amazon that speaks S3.'),
          region: z.string().min(1).optional().describe('Of the bucket.'),
        })
        .refine(({ to, endpoint, region }) => to.startsWith('s3:') || (endpoint ?? region) === undefined, {
          path: ['to'],
          error: 'must be "s3://BUCKET/PREFIX" where there is an endpoint or a region',
        })
        .optional()
        .describe('Where calls and charges are written before they are deleted, in a database.'),
      usage: period.prefault('25mo').describe('How long the usage of single users and tags is kept.'),
    })
    .prefault({}),
  metrics: z
    .strictObject({
      labels: z
        .array(z.string())
        .refine((labels) => metricLabelsFault(labels) === undefined, {
          error: ({ input }) => metricLabelsFault(input as unknown[]),
        })
        .default([])
        .describe('The attributes by which calls, tokens and charges are counted, beside their model.'),
      maxLabelValues: z.int().min(1).max(10_000).default(100),
    })
    .prefault({})
    .describe('Further values of a label count as "other".'),
  urlSigningSecret: z
    .union([signingSecret, z.array(signingSecret).min(1)], {
      error: 'must be at least 16 characters long, or a list of such secrets',
    })
    .optional()
    .describe('Signs addresses of videos. Of a list, the first one signs, and all are accepted.'),
  cors: z
    .strictObject({
      origins: z
        .array(
          z
            .string()
            .regex(/^(\*|https?:\/\/[^/?#@*\s]+)$/, { error: AS_SENT, abort: true })
            .refine(isAsSent, AS_SENT),
        )
        .min(1),
    })
    .optional()
    .describe('The origins whose pages may call the gateway. Absent: none.'),
}
