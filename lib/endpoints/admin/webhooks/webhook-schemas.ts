import { z } from 'zod'
import { WELL_FORMED } from '../../../core/json/index.ts'
import { pageMembers } from '../../../core/json-api/index.ts'
import { WEBHOOK_EVENTS } from '../../../webhooks/index.ts'
import { rotationSchema } from '../rotation-schema.ts'

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
    .refine(...WELL_FORMED)
    .nullable()
    .default(null),
})

/** The body of `POST /webhooks/{id}/rotate`. */
export const webhookRotationSchema = rotationSchema('For how long the previous secret signs, too.', 86_400)

/** The query of `GET /webhooks/{id}/deliveries`. */
export const deliveryQuery = z.strictObject(pageMembers((text) => /^\d{1,18}$/.test(text)))
