import { z } from 'zod'
import { formatAmount } from '../../core/catalog/index.ts'
import { type Answer, type AnswerOf, amount, time } from '../../core/json-api/index.ts'
import { durationOf, type UsageGroup, type UsageRow } from '../../core/usage/index.ts'

const usageRow = z
  .looseObject({
    requests: z.int(),
    refused: z.int(),
    failed: z.int(),
    input_tokens: z.int(),
    cached_input_tokens: z.int(),
    output_tokens: z.int(),
    images: z.int(),
    seconds: z.number().describe('Of video.'),
    charged: amount,
    cost: amount.optional(),
    p50_ms: z.number().nullable().describe('Interpolated.'),
    p95_ms: z.number().nullable(),
  })
  .describe('The groups are members of their names.')
export type UsageRowAnswer = AnswerOf<typeof usageRow>

const usageList = z.strictObject({
  object: z.literal('list'),
  from: time,
  to: time,
  data: z.array(usageRow),
  next_cursor: z.string().nullable(),
})
export type UsageAnswer = AnswerOf<typeof usageList>

export const USAGE_ANSWERS: readonly [Answer<typeof usageList>] = [
  {
    status: 200,
    description: 'A list; with `format=csv` a table, whose `next_cursor` is the header `X-Next-Cursor`.',
    schema: ['UsageList', usageList],
    media: ['application/json', 'text/csv'],
  },
]

/** A row as callers get it, the groups first. */
type DescribedRow = UsageRowAnswer & Readonly<Record<string, string | number | null>>

/** @param withCost whether to include the operator's cost, which callers must not see. */
export function describeUsage(
  { groups, sums }: UsageRow,
  groupBy: readonly UsageGroup[],
  withCost: boolean,
): DescribedRow {
  return {
    ...Object.fromEntries(
      groupBy.map((group, i) => [group, shownGroup(group, groups[i] as string | number)]),
    ),
    requests: sums.requests,
    refused: sums.refused,
    failed: sums.failed,
    input_tokens: sums.inputTokens,
    cached_input_tokens: sums.cachedInputTokens,
    output_tokens: sums.outputTokens,
    images: sums.images,
    seconds: sums.milliseconds / 1000,
    charged: formatAmount(sums.charged),
    ...(withCost && { cost: formatAmount(sums.cost) }),
    p50_ms: durationOf(sums.durations, 0.5),
    p95_ms: durationOf(sums.durations, 0.95),
  }
}

const LENGTH: Readonly<Record<string, number>> = { day: 'YYYY-MM-DD'.length, month: 'YYYY-MM'.length }

function shownGroup(group: UsageGroup, value: string | number): string | null {
  if (typeof value === 'string') return value === '' ? null : value
  return new Date(value).toISOString().slice(0, LENGTH[group])
}

/** Returns rows as CSV (RFC 4180), with a line of names. */
export function csvOf(names: readonly string[], rows: readonly DescribedRow[]): string {
  const lines = [names.map(csvCell), ...rows.map((row) => names.map((name) => csvCell(row[name] ?? '')))]
  return lines.map((cells) => `${cells.join()}\r\n`).join('')
}

/** A spreadsheet takes a text that begins so for a formula. */
const FORMULA = /^[=+\-@\t\r]/

function csvCell(value: string | number): string {
  const text =
    typeof value === 'string' && FORMULA.test(value) && !/^-?[\d.]+$/.test(value)
      ? `'${value}`
      : String(value)
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text
}
