import type { UsageRowAnswer } from 'express-model-gateway/usage'
import type { Page, Query } from './api.ts'
import type { Session } from './session.ts'
import type { ViewContext } from './view.ts'

/** A row of `/usage`: the members that it is grouped by, and its sums. */
export type UsageRow = UsageRowAnswer &
  Partial<Readonly<Record<'minute' | 'hour' | 'day' | 'month', string>>> & {
    /** The other groups: account, key, model, line, user, tags. */
    readonly [group: string]: string | number | null | undefined
  }

/** Bounds what a view reads; the rows of a group may be as many as there are keys. */
const MAX_ROWS = 5000
const PAGE = 1000

/** Returns the path of usage: holders of keys see that of their account, operators see all. */
export function usagePath({ kind }: Session): string {
  return kind === 'admin' ? 'admin/usage' : 'v1/usage'
}

/** Reads all rows of a grouping; undefined if there are more than a view shows. */
export async function readUsage(
  { session, api, signal }: ViewContext,
  query: Query,
): Promise<readonly UsageRow[] | undefined> {
  const rows: UsageRow[] = []
  let cursor: string | undefined
  do {
    const asked = { ...query, limit: PAGE, cursor }
    const page: Page<UsageRow> = await api.get(usagePath(session), asked, signal)
    rows.push(...page.data)
    cursor = page.next_cursor ?? undefined
    if (rows.length > MAX_ROWS) return undefined
  } while (cursor !== undefined)
  return rows
}

/** Whether there is a cost to show: not for holders of keys, nor where no line has one. */
export function hasCost({ cost }: UsageRow): boolean {
  return cost !== undefined && Number(cost) !== 0
}

/** The sums of nothing: a grouping without rows has none. */
export const NO_USAGE: UsageRow = {
  requests: 0,
  refused: 0,
  failed: 0,
  input_tokens: 0,
  cached_input_tokens: 0,
  output_tokens: 0,
  images: 0,
  seconds: 0,
  charged: '0',
  p50_ms: null,
  p95_ms: null,
}
