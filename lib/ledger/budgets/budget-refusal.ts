import type { BudgetPeriod } from './budget.ts'

/** Returns what a caller is told of a budget that refuses: whose it is and when it begins anew, but no amount. */
export function budgetRefusal({ scope: { key, user, tag }, endsAt }: BudgetPeriod): string {
  const owners = [
    key !== null && 'the key',
    user !== null && `the user "${user}"`,
    tag !== null && `the tag "${tag}"`,
  ]
  const owner = owners.filter((each) => each !== false).join(' with ') || 'the account'
  const until = endsAt === null ? '' : ` It begins anew at ${new Date(endsAt).toISOString()}.`
  return `The budget of ${owner} does not cover this call.${until} The operator of the gateway can raise it.`
}
