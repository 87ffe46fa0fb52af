import fc from 'fast-check'
import { type Tags, tagsOf } from '../../lib/core/catalog/index.ts'
import type { CallUsage, UsageGroup, UsageQuery } from '../../lib/core/usage/index.ts'
import type { Settlement } from '../../lib/ledger/index.ts'
import type { CallLogEntry } from '../../lib/middleware/call-log/index.ts'
import { entryAt } from './call-store.ts'

export const HOUR = 3_600_000
export const START = Date.parse('2026-01-30T21:00:00Z')
export const SPAN = 60 * HOUR

/** A call as the test counts it. */
export interface Counted {
  readonly at: number
  readonly account: string
  readonly key: string | null
  readonly usage: CallUsage
  readonly charged: bigint
  readonly cost: bigint
}

const tags = fc.constantFrom<Tags>(
  tagsOf([]),
  tagsOf([['team', 'search']]),
  tagsOf([
    ['team', 'ads'],
    ['env', 'prod'],
  ]),
  tagsOf([
    ['env', "p'r%o$d"],
    ['a.b:c', '語'],
    ['nul ␀', '␀0'],
  ]),
)
const text = (...values: (string | null)[]) => fc.constantFrom(...values)
export const counted = fc.record({
  at: fc.integer({ min: START, max: START + SPAN - 1 }),
  account: fc.constantFrom('acme', 'globex'),
  key: text('k1', 'k2', null),
  charged: fc.bigInt({ min: 0n, max: 10n ** 15n }),
  cost: fc.bigInt({ min: 0n, max: 10n ** 12n }),
  usage: fc.record({
    model: text('small', 'large', null),
    line: text('us', 'eu', null),
    user: text('ann', 'Bob', "o'neil", null),
    tags,
    requests: fc.constantFrom(1, 1, 0),
    refused: fc.constant(0),
    failed: fc.constantFrom(0, 1),
    durationMs: fc.oneof(fc.constant(null), fc.integer({ min: 0, max: 400_000 })),
    inputTokens: fc.nat(1_000_000),
    cachedInputTokens: fc.nat(1000),
    outputTokens: fc.nat(100_000),
    images: fc.nat(4),
    seconds: fc.constantFrom(0, 8, 0.25),
  }),
})

export const GROUPINGS: readonly (readonly UsageGroup[])[] = [
  [],
  ['hour'],
  ['day', 'account'],
  ['month', 'model'],
  ['key', 'line'],
  ['user'],
  ['tag:team', 'tag:a.b:c', 'tag:nul ␀'],
  ['account', 'user', 'tag:env', 'day'],
]

export function refusedEntry({ at: time, account, key, usage }: Counted, repeats: number): CallLogEntry {
  const isRefused = usage.failed === 0
  return entryAt(time, {
    account,
    key,
    model: usage.model,
    user: usage.user,
    tags: usage.tags,
    status: isRefused ? 429 : 502,
    error_code: isRefused ? 'rate_limited' : 'upstream_error',
    outcome: isRefused ? 'refused' : 'failed',
    routing: {
      region: 'r',
      strategy: 's',
      eliminated: [],
      attempts: usage.line === null ? [] : [{ line: usage.line } as never],
    },
    ...(repeats > 0 && { repeats }),
  })
}

export function countedOf({
  created_at,
  account,
  key,
  model,
  routing,
  user,
  tags,
  outcome,
  repeats = 0,
}: CallLogEntry): Counted {
  const requests = 1 + repeats
  const zero = {
    inputTokens: 0,
    cachedInputTokens: 0,
    outputTokens: 0,
    images: 0,
    seconds: 0,
    durationMs: null,
  }
  const [refused, failed] = outcome === 'refused' ? [requests, 0] : [0, requests]
  const line = routing?.attempts[0]?.line ?? null
  const usage = { ...zero, model, line, user: user ?? null, tags: tags as Tags, requests, refused, failed }
  return { at: Date.parse(created_at), account: account as string, key, usage, charged: 0n, cost: 0n }
}

export function at({ at: time }: Counted, from: number, to: number): boolean {
  return time >= from && time < to
}

export function isOf({ account, key, usage }: Counted, filter: Partial<UsageQuery>): boolean {
  const { model, line, user, tags: has } = usage
  return (
    [undefined, account].includes(filter.account) &&
    [undefined, key ?? ''].includes(filter.key) &&
    [undefined, model ?? ''].includes(filter.model) &&
    [undefined, line ?? ''].includes(filter.line) &&
    [undefined, user ?? ''].includes(filter.user) &&
    Object.entries(filter.tags ?? {}).every(([name, value]) => has[name] === value)
  )
}

export function figures(sums: Record<string, unknown>): string {
  const {
    requests,
    refused,
    failed,
    inputTokens,
    cachedInputTokens,
    outputTokens,
    images,
    milliseconds,
    charged,
    cost,
  } = sums
  const counts = [
    requests,
    refused,
    failed,
    inputTokens,
    cachedInputTokens,
    outputTokens,
    images,
    milliseconds,
  ]
  return [...counts, charged, cost, (sums.durations as number[]).reduce((one, other) => one + other)].join(
    ' ',
  )
}

export function expected(calls: readonly Counted[], groupBy: readonly UsageGroup[]): string[] {
  const groups = new Map<string, { key: (string | number)[]; calls: Counted[] }>()
  for (const call of calls) {
    const key = groupBy.map((group) => groupOf(call, group))
    const name = JSON.stringify(key)
    if (!groups.has(name)) groups.set(name, { key, calls: [] })
    groups.get(name)?.calls.push(call)
  }
  const sorted = [...groups.values()].sort((one, other) => {
    for (const [i, value] of one.key.entries()) {
      const against = other.key[i] as string | number
      if (value !== against) return value < against ? -1 : 1
    }
    return 0
  })
  return sorted
    .map(({ key, calls: those }) => {
      const sum = (of: (usage: CallUsage) => number) =>
        those.reduce((total, { usage }) => total + of(usage), 0)
      const money = (of: (call: Counted) => bigint) => those.reduce((total, call) => total + of(call), 0n)
      const sums = {
        requests: sum((usage) => usage.requests),
        refused: sum((usage) => usage.refused),
        failed: sum((usage) => usage.failed),
        inputTokens: sum((usage) => usage.inputTokens),
        cachedInputTokens: sum((usage) => usage.cachedInputTokens),
        outputTokens: sum((usage) => usage.outputTokens),
        images: sum((usage) => usage.images),
        milliseconds: sum((usage) => usage.seconds * 1000),
        charged: money(({ charged }) => charged),
        cost: money(({ cost }) => cost),
        durations: [sum((usage) => (usage.durationMs === null ? 0 : usage.requests))],
      }
      return [...key, figures(sums)].join('|')
    })
    .filter((row) => !/(?:^|\|)[0 ]+$/.test(row))
}

function groupOf({ at: time, account, key, usage }: Counted, group: UsageGroup): string | number {
  const date = new Date(time)
  if (group === 'minute') return date.setUTCSeconds(0, 0)
  if (group === 'hour') return date.setUTCMinutes(0, 0, 0)
  if (group === 'day') return date.setUTCHours(0, 0, 0, 0)
  if (group === 'month') return Date.UTC(date.getUTCFullYear(), date.getUTCMonth())
  if (group === 'account') return account
  if (group === 'key') return key ?? ''
  if (group === 'model' || group === 'line' || group === 'user') return usage[group] ?? ''
  return usage.tags[group.slice(4)] ?? ''
}

/** Returns a settlement of a call that a test has counted. */
export function settlementOf(call: Counted, kind: Settlement['kind'], requestId: string): Settlement {
  const { at, account, key, charged: amount, cost, usage } = call
  return {
    kind,
    requestId,
    account,
    key,
    amount,
    cost,
    at,
    usage,
    basis: '{}',
    draws: [],
    claim: null,
    entry: null,
  }
}
