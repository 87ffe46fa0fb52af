import { AccountSizes } from './account-sizes.ts'

/**
 * Returns how many items of each account give way, so that no more than `most` stay: one after another, each of the account
 * that has the most left.
 *
 * @param counts how many items each account has.
 * @example
 * surplusOf([['a', 7], ['b', 2]], 5) // Map { 'a' => 4 }
 */
export function surplusOf(counts: Iterable<readonly [string, number]>, most: number): Map<string, number> {
  const left = new AccountSizes()
  let surplus = -most
  for (const [account, count] of counts) {
    left.add(account, count)
    surplus += count
  }
  const giving = new Map<string, number>()
  for (; surplus > 0; surplus--) {
    const account = left.largest() as string
    left.remove(account, 1)
    giving.set(account, (giving.get(account) ?? 0) + 1)
  }
  return giving
}
