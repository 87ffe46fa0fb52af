import { z } from 'zod'
import { isTagName } from '../../core/catalog/index.ts'
import { queryTime } from '../../core/json-api/index.ts'
import {
  HOUR_MS,
  MINUTE_MS,
  MINUTES_KEPT_MS,
  type UsageGroup,
  type UsageQuery,
  type UsageRow,
} from '../../core/usage/index.ts'

const DEFAULT_LIMIT = 100
const MAX_LIMIT = 1000
/** A table is one file, as long as it is not too large. */
const MAX_CSV_ROWS = 10_000
const DAY_MS = 24 * HOUR_MS
const MAX_HOURLY_MS = 93 * DAY_MS
const MAX_RANGE_MS = 3660 * DAY_MS
const MAX_GROUPS = 8

const TIMES = ['minute', 'hour', 'day', 'month'] as const
const OWN_NAMES = ['key', 'model', 'user'] as const
const ALL_NAMES = ['account', ...OWN_NAMES, 'line'] as const

const name = z.string({ error: 'must be one name' }).max(256, 'must be one name').optional()
const limitError = `must be a whole number from 1 to ${MAX_LIMIT}`

/** The groups that a query names, in one parameter or several. */
function groupsOf(names: readonly string[]) {
  const known = new Set<string>([...TIMES, ...names])
  const groupError = `must be names out of ${[...known].join(', ')} and tag:<name>, at most ${MAX_GROUPS}, with one time at most`
  return z
    .union([z.string(), z.array(z.string())], { error: groupError })
    .transform((given) => [given].flat().join().split(',') as UsageGroup[])
    .refine(
      (groups) =>
        groups.length <= MAX_GROUPS &&
        new Set(groups).size === groups.length &&
        groups.filter((group) => (TIMES as readonly string[]).includes(group)).length <= 1 &&
        groups.every((group) => known.has(group) || (group.startsWith('tag:') && isTagName(group.slice(4)))),
      { error: groupError },
    )
    .optional()
}

const common = {
  from: queryTime.optional(),
  to: queryTime.optional(),
  key: name,
  model: name,
  user: name,
  format: z.enum(['json', 'csv'], { error: 'must be json or csv' }).default('json'),
  limit: z
    .string({ error: limitError })
    .regex(/^[1-9]\d{0,3}$/, limitError)
    .transform(Number)
    .refine((count) => count <= MAX_LIMIT, { error: limitError })
    .optional()
    .describe(
      `A whole number from 1 to ${MAX_LIMIT}. Defaults to ${DEFAULT_LIMIT}, with csv to ${MAX_CSV_ROWS}.`,
    ),
  cursor: z.string({ error: 'must be the next_cursor of a list' }).max(4000).optional(),
}

/** The query of the usage of an account, without its tags. */
export const ownUsageQuery = z.strictObject({ ...common, group_by: groupsOf(OWN_NAMES) })

export const allUsageQuery = z.strictObject({
  ...common,
  account: name,
  line: name,
  group_by: groupsOf(ALL_NAMES),
})

export type GivenQuery = z.output<typeof allUsageQuery>

/** A parameter that cannot be used, and why. */
export interface QueryFault {
  readonly param: string
  readonly fault: string
}

/** Returns the parsed query. Its range is widened to whole minutes, or to whole hours where minutes have been deleted. */
export function askedUsage(
  { from, to, group_by: groupBy = [], format, limit, cursor, ...filters }: GivenQuery,
  now: number,
): UsageQuery | QueryFault {
  const isByMinute = groupBy.includes('minute')
  const unitOf = (time: number) => (time >= now - MINUTES_KEPT_MS ? MINUTE_MS : HOUR_MS)
  const floor = (time: number) => Math.floor(time / unitOf(time)) * unitOf(time)
  const given = to ?? now + 1
  const end = Math.ceil(given / unitOf(given)) * unitOf(given)
  const begin = from === undefined ? (isByMinute ? floor(end - HOUR_MS) : monthOf(end - 1)) : floor(from)
  if (isByMinute && begin < now - MINUTES_KEPT_MS - MINUTE_MS)
    return {
      param: from === undefined ? 'to' : 'from',
      fault: `must be within the last ${MINUTES_KEPT_MS / HOUR_MS} hours with the group minute`,
    }
  const most = groupBy.includes('hour') ? MAX_HOURLY_MS : MAX_RANGE_MS
  if (begin >= end)
    return { param: from === undefined ? 'to' : 'from', fault: 'must be before the end of the range' }
  if (end - begin > most)
    return { param: 'from', fault: `must be at most ${most / DAY_MS} days before the end of the range` }
  const after = cursor === undefined ? undefined : groupsIn(cursor, groupBy)
  if (after === null)
    return { param: 'cursor', fault: 'must be the next_cursor of a list with the same groups' }
  const rows = limit ?? (format === 'csv' ? MAX_CSV_ROWS : DEFAULT_LIMIT)
  return { ...filters, from: begin, to: end, groupBy, after, limit: rows }
}

function monthOf(time: number): number {
  const date = new Date(time)
  return Date.UTC(date.getUTCFullYear(), date.getUTCMonth())
}

/** Returns the cursor of the rows behind one. */
export function cursorOf({ groups }: UsageRow): string {
  return Buffer.from(JSON.stringify(groups)).toString('base64url')
}

/** Returns the groups of a cursor; null if it is of another list. */
function groupsIn(cursor: string, groupBy: readonly UsageGroup[]): UsageRow['groups'] | null {
  try {
    const groups: unknown = JSON.parse(Buffer.from(cursor, 'base64url').toString())
    if (!Array.isArray(groups) || groups.length !== groupBy.length || groups.length === 0) return null
    const isFit = groups.every((value, i) =>
      (TIMES as readonly string[]).includes(groupBy[i] as string)
        ? Number.isSafeInteger(value) &&
          (value as number) % (groupBy[i] === 'minute' ? MINUTE_MS : HOUR_MS) === 0
        : typeof value === 'string',
    )
    return isFit ? groups : null
  } catch {
    return null
  }
}
