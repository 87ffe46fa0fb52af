import { z } from 'zod'
import { pageMembers } from '../../../core/json-api/index.ts'
import { WEBHOOK_EVENTS } from '../../../webhooks/index.ts'

const eventError = `must be one of ${WEBHOOK_EVENTS.join(', ')}`

/** The body of `POST /webhooks`. */
export const newWebhookSchema = z.strictObject({
  url: z.string().describe('An https address on the public internet.'),
  events: z
    .array(z.enum(WEBHOOK_EVENTS, eventError))
    .min(1)
    .max(WEBHOOK_EVENTS.length)
    .nullable()
    .default(null)
    .describe('The types of events; null: all, also those of later versions.'),
  description: z
    .string()
    .min(1)
    .max(200)
    .refine((value) => value.isWellFormed(), { error: 'must be well-formed Unicode' })
    .nullable()
    .default(null),
})

const WEEK_SECONDS = 604_800

/** The body of `POST /webhooks/{id}/rotate`. */
export const webhookRotationSchema = z
  .strictObject({
    overlap_seconds: z
      .int()
      .min(0)
      .max(WEEK_SECONDS)
      .default(86_400)
      .describe('For how long the previous secret signs, too.'),
  })
  .prefault({})

/** The query of `GET /webhooks/{id}/deliveries`. */
export const deliveryQuery = z.strictObject(pageMembers((text) => /^\d{1,18}$/.test(text)))
