/**
 * Returns items with those of each account in turn: the first of each, then the second of each, and so on.
 *
 * @example
 * inTurn(['a1', 'a2', 'b1'], (item) => item[0]) // ['a1', 'b1', 'a2']
 */
export function inTurn<Item>(items: readonly Item[], accountOf: (item: Item) => string): Item[] {
  const rounds: Item[][] = []
  const seen = new Map<string, number>()
  for (const item of items) {
    const account = accountOf(item)
    const round = seen.get(account) ?? 0
    seen.set(account, round + 1)
    const others = rounds[round] ?? []
    rounds[round] = others
    others.push(item)
  }
  return rounds.flat()
}
