import { z } from 'zod'
import { ROLES } from '../../core/call/index.ts'

const time = z.iso.datetime()

export const operator = z.strictObject({
  id: z.string(),
  object: z.literal('operator'),
  name: z.string(),
  role: z.enum(ROLES),
  previous_token_until: time.nullable().describe('Until when the token before the last rotation is valid.'),
  created_at: time,
})

export const operatorWithToken = operator.extend({ token: z.string() })

const roles = z.array(z.enum(ROLES))

export const ownSession = z.strictObject({
  object: z.literal('session'),
  name: z.string(),
  roles,
  expires_at: time.nullable().describe('null: a token sent the request.'),
})

export const session = ownSession.extend({ id: z.string(), created_at: time, expires_at: time })
