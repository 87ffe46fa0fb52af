/** From where to where, in UTF-16 units. */
export type Range = readonly [start: number, end: number]

interface CountedRange {
  readonly startOffset: number
  readonly endOffset: number
  readonly count: number
}

/** Returns what was run of a file, of V8's nested ranges, of which the innermost counts. */
export function runRanges(counted: readonly CountedRange[]): Range[] {
  const outermostFirst = counted.toSorted(
    (one, other) => one.startOffset - other.startOffset || other.endOffset - one.endOffset,
  )
  const run = new Uint8Array(counted.reduce((most, { endOffset }) => Math.max(most, endOffset), 0))
  for (const { startOffset, endOffset, count } of outermostFirst) run.fill(count && 1, startOffset, endOffset)
  return rangesOf(run)
}

/** Returns what is in any of the ranges. */
export function union(ranges: readonly Range[]): Range[] {
  const merged: [number, number][] = []
  for (const [start, end] of ranges.toSorted((one, other) => one[0] - other[0])) {
    const last = merged.at(-1)
    if (last && start <= last[1]) last[1] = Math.max(last[1], end)
    else merged.push([start, end])
  }
  return merged
}

function rangesOf(run: Uint8Array): Range[] {
  const ranges: Range[] = []
  for (let start = run.indexOf(1); start >= 0; ) {
    const end = run.indexOf(0, start)
    ranges.push([start, end < 0 ? run.length : end])
    start = end < 0 ? -1 : run.indexOf(1, end)
  }
  return ranges
}
