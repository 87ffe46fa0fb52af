import type { CallQuery } from '../../../lib/middleware/call-log/index.ts'
import { LARGE_ACCOUNT, SMALL_ACCOUNTS } from './rows.ts'

/** A search, with a new subject each time. */
export interface SearchCase {
  readonly name: string
  readonly query: () => Partial<CallQuery>
}

const one = (name: string, query: Partial<CallQuery>): SearchCase => ({ name, query: () => query })
const below = (most: number): number => Math.floor(Math.random() * most)

const FILTERS: readonly SearchCase[] = [
  one('no filter', {}),
  one('model of most', { model: 'chat-small' }),
  one('model of few', { model: 'chat-rare' }),
  one('model of none', { model: 'chat-none' }),
  one('line', { line: 'asia' }),
  one('line of none', { line: 'mars' }),
  { name: 'user', query: () => ({ user: `user_${below(2000)}` }) },
  one('user of none', { user: 'nobody' }),
  { name: 'tag', query: () => ({ tags: { team: `team_${below(4)}` } }) },
  one('tag of few', { tags: { team: 'rare' } }),
  { name: 'client_request_id', query: () => ({ clientRequestId: `client_${20 * below(1000) + 6}` }) },
  one('status 200', { status: 200 }),
  one('status 502', { status: 502 }),
  one('status of few', { status: 504 }),
  one('status of none', { status: 418 }),
  one('status 2xx', { statusClass: 2 }),
  one('status 5xx', { statusClass: 5 }),
  one('status 3xx, none', { statusClass: 3 }),
  one('code', { code: 'rate_limited' }),
  one('code of few', { code: 'upstream_timeout' }),
  one('code of none', { code: 'key_expired' }),
  one('at least 1 s', { minDurationMs: 1000 }),
  one('at least 5 s', { minDurationMs: 5000 }),
  one('at least 12 s', { minDurationMs: 12_000 }),
  one('at least 60 s, few', { minDurationMs: 60_000 }),
  one('at least 11 min, few', { minDurationMs: 660_000 }),
  one('at least 1 h, none', { minDurationMs: 3_600_000 }),
]

const PAIRS: readonly SearchCase[] = [
  one('model and 5xx', { model: 'chat-large', statusClass: 5 }),
  one('model of few and status 200', { model: 'chat-rare', status: 200 }),
  one('model and line, never together', { model: 'chat-large', line: 'asia' }),
  one('code and line, never together', { code: 'rate_limited', line: 'us' }),
  one('line and 5xx', { line: 'asia', statusClass: 5 }),
  { name: 'user and model', query: () => ({ user: `user_${below(2000)}`, model: 'chat-mini' }) },
  one('tag and 5xx', { tags: { team: 'team_1' }, statusClass: 5 }),
  one('tag and model of few', { tags: { team: 'team_1' }, model: 'chat-rare' }),
  one('status 200 and at least 30 s', { status: 200, minDurationMs: 30_000 }),
  one('5xx and at least 10 s', { statusClass: 5, minDurationMs: 10_000 }),
  one('model and at least 10 s', { model: 'chat-mini', minDurationMs: 10_000 }),
  one('429 and at least 1 s, never together', { status: 429, minDurationMs: 1000 }),
]

const small = (): string => `account_${1 + below(SMALL_ACCOUNTS - 1)}`

const OF_ACCOUNTS: readonly SearchCase[] = [
  one('key', { key: 'key_0_3' }),
  one('account and key of another', { account: LARGE_ACCOUNT, key: 'key_77' }),
  { name: 'small account', query: () => ({ account: small() }) },
  { name: 'small account, model', query: () => ({ account: small(), model: 'chat-large' }) },
  { name: 'small account, 5xx', query: () => ({ account: small(), statusClass: 5 }) },
  { name: 'small account, status 200', query: () => ({ account: small(), status: 200 }) },
  { name: 'small account, at least 5 s', query: () => ({ account: small(), minDurationMs: 5000 }) },
  { name: 'small account, at least 60 s', query: () => ({ account: small(), minDurationMs: 60_000 }) },
  { name: 'small account, line', query: () => ({ account: small(), line: 'asia' }) },
]

export const SEARCHES: readonly SearchCase[] = [
  ...FILTERS,
  ...FILTERS.map(({ name, query }) => ({
    name: `large account, ${name}`,
    query: () => ({ ...query(), account: LARGE_ACCOUNT }),
  })),
  ...PAIRS,
  ...OF_ACCOUNTS,
]
