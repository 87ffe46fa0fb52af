/** Returns `; did you mean "…"?` with the name that was probably meant; an empty text if none is like the given one. */
export function didYouMean(name: string, names: readonly string[]): string {
  const wrong = name.toLowerCase()
  const meant = names.find((each) => areAlike(wrong, each.toLowerCase()))
  return meant === undefined ? '' : `; did you mean "${meant}"?`
}

/** Whether two names differ by one letter, by two letters in turn, or by letters that one of them has in addition. */
function areAlike(one: string, other: string): boolean {
  if (one === other) return true
  const isBeginning = one.startsWith(other) || other.startsWith(one)
  if (isBeginning) return Math.min(one.length, other.length) >= 3 || Math.abs(one.length - other.length) === 1
  let from = 0
  while (one[from] === other[from]) from++
  const inTurn = one[from] === other[from + 1] && one[from + 1] === other[from]
  const rests = [
    [one.slice(from + 1), other.slice(from)],
    [one.slice(from), other.slice(from + 1)],
    [one.slice(from + 1), other.slice(from + 1)],
  ]
  return rests.some(([a, b]) => a === b) || (inTurn && one.slice(from + 2) === other.slice(from + 2))
}
