import { z } from 'zod'
import { type CallLogEntry, isRequestId } from '../../core/call/index.ts'
import type { CallQuery } from '../../core/call-store/index.ts'
import { isErrorCode } from '../../core/errors/index.ts'
import { pageMembers, queryTime } from '../../core/json-api/index.ts'
import { CALL_COUNTS } from '../../core/usage/index.ts'

const modelError = 'must be one model id'
const statusError = 'must be an HTTP status, such as 429 or 5xx'
const clientIdError =
  'must be the X-Request-Id that the caller sent, of printable ASCII, at most 200 characters'
const codeError = 'must be an error code of this service'

const FINISHES = [
  'completed',
  'refused',
  'failed',
  'interrupted',
] as const satisfies CallLogEntry['outcome'][]
const mustBeOneOf = (values: readonly string[]) => `must be one of ${values.join(', ')}`

const oneId = (of: string) =>
  z
    .string({ error: `must be the id of ${of}, sent once` })
    .max(200)
    .optional()
const durationError = 'must be a whole number of milliseconds'

/** The query of the list of an account's calls, without its tags. */
export const callQuery = z.strictObject({
  key: oneId('a key'),
  user: z.string({ error: 'must be one user' }).max(200).optional(),
  model: z.string({ error: modelError }).max(200, modelError).optional(),
  status: z
    .string({ error: statusError })
    .regex(/^[1-5](?:\d\d|xx)$/, statusError)
    .optional(),
  code: z.string({ error: codeError }).refine(isErrorCode, { error: codeError }).optional(),
  outcome: z.enum(FINISHES, { error: mustBeOneOf(FINISHES) }).optional(),
  counted: z
    .enum(CALL_COUNTS, { error: mustBeOneOf(CALL_COUNTS) })
    .optional()
    .describe('Calls that `/usage` has in this count.'),
  client_request_id: z
    .string({ error: clientIdError })
    .regex(/^[\x20-\x7e]{1,200}$/, clientIdError)
    .optional(),
  min_duration_ms: z
    .string({ error: durationError })
    .regex(/^\d{1,9}$/, durationError)
    .transform(Number)
    .optional(),
  from: queryTime.optional(),
  to: queryTime.optional(),
  ...pageMembers(isRequestId),
})

export const allCallsQuery = callQuery.extend({
  account: oneId('an account'),
  line: oneId('a line'),
})

/** Returns the filters of a query, as stores know them. */
export function filtersOf({
  status,
  min_duration_ms: minDurationMs,
  client_request_id: clientRequestId,
  ...filters
}: Omit<z.output<typeof allCallsQuery>, 'cursor' | 'limit'>): Omit<CallQuery, 'limit'> {
  const isClass = status?.endsWith('xx')
  return {
    ...filters,
    minDurationMs,
    clientRequestId,
    ...(status !== undefined && (isClass ? { statusClass: Number(status[0]) } : { status: Number(status) })),
  }
}
