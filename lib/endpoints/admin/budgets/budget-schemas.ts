import { z } from 'zod'
import { userOf } from '../../../core/call/index.ts'
import { isTagName, isTagValue } from '../../../core/catalog/index.ts'
import { BUDGET_PERIODS } from '../../../ledger/budgets/budget.ts'
import { isTimezone } from '../../../ledger/budgets/budget-period.ts'
import { id, positiveAmount } from '../accounts/account-schemas.ts'

const MAX_SOFT = 10

const tagError = 'must be a name and a value, such as "team=search"'

const tag = z.string({ error: tagError }).refine(isTag, { error: tagError })

/** No call has a user with another name: such a budget would never count. */
const user = z.string().refine((name) => userOf(name) === name, {
  error:
    'must be as the call log has it: 1 to 128 bytes without control characters, spaces at the ends, or the session that Claude Code adds',
})

const scope = z.strictObject({
  account: id,
  key: id.nullable().default(null),
  user: user.nullable().default(null),
  tag: tag.nullable().default(null),
})

const share = z.number().gt(0).max(1).multipleOf(0.000001)

const soft = z
  .array(share)
  .max(MAX_SOFT)
  .refine((shares) => new Set(shares).size === shares.length, { error: 'must have no share twice' })
  .transform((shares) => shares.toSorted((one, other) => one - other))

const terms = { amount: positiveAmount, hard: z.boolean(), soft }

/** The body of `POST /budgets`. */
export const newBudgetSchema = z.strictObject({
  scope,
  amount: terms.amount,
  period: z.enum(BUDGET_PERIODS),
  timezone: z
    .string()
    .max(100)
    .refine(isTimezone, { error: 'must be the name of a time zone, such as "Europe/Berlin"' })
    .default('UTC'),
  hard: terms.hard.default(true),
  soft: terms.soft.default([]),
})

/** The body of `PATCH /budgets/{id}`. */
export const budgetChangeSchema = z.strictObject(terms).partial()

function isTag(text: string): boolean {
  const at = text.indexOf('=')
  return at > 0 && isTagName(text.slice(0, at)) && isTagValue(text.slice(at + 1))
}
