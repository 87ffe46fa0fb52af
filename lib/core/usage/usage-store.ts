import type { Tags } from '../catalog/index.ts'
import type { UsageSums } from './usage-sums.ts'

/** The members that usage can be grouped by. Times are in UTC. */
export type UsageGroup =
  | 'minute'
  | 'hour'
  | 'day'
  | 'month'
  | 'account'
  | 'key'
  | 'model'
  | 'line'
  | 'user'
  | `tag:${string}`

/** Selects usage; a member that is left out does not filter. */
export interface UsageQuery {
  /** Milliseconds since the epoch, inclusive: the beginning of an hour, or of a minute of the last 48 hours. */
  readonly from: number
  /** The same, exclusive. */
  readonly to: number
  /** With `minute`, the time must be within the last 48 hours. */
  readonly groupBy: readonly UsageGroup[]
  readonly account?: string | undefined
  readonly key?: string | undefined
  readonly model?: string | undefined
  readonly line?: string | undefined
  readonly user?: string | undefined
  readonly tags?: Tags | undefined
  /** The groups of the last row of the previous page. */
  readonly after?: UsageRow['groups'] | undefined
  /** Most rows to return; at least 1. */
  readonly limit: number
}

/** The usage of one group of calls. */
export interface UsageRow {
  /** In the order of `groupBy`: the beginning of a time in milliseconds, or a name, which is empty if there is none. */
  readonly groups: readonly (string | number)[]
  readonly sums: UsageSums
}

/** Reads the usage that a ledger and a call log have counted. */
export interface UsageStore {
  /** Returns rows in the order of their groups. */
  read(query: UsageQuery): Promise<UsageRow[]>
}

/** Whether a query needs the usage of users and tags, which is kept for a limited time. */
export function isFine({ groupBy, user, tags }: Pick<UsageQuery, 'groupBy' | 'user' | 'tags'>): boolean {
  return (
    user !== undefined ||
    tags !== undefined ||
    groupBy.some((group) => group === 'user' || group.startsWith('tag:'))
  )
}
