import type { CallLogEntry, CallQuery } from '../../../lib/middleware/call-log/index.ts'
import { firstIdOf } from '../../../lib/stores/sql/driver/id-times.ts'
import { SEARCHES } from './cases.ts'
import { eachMs, FIRST_AT, type Span } from './rows.ts'

/** Milliseconds of the searches of one case. */
export interface SearchFigures {
  readonly name: string
  readonly p50: number
  readonly p95: number
  readonly max: number
  /** The CPU time at p95, which others on the machine hardly change. */
  readonly cpuP95: number
  /** Calls found, on average. */
  readonly found: number
  /** The share of pages that are short although there may be more. */
  readonly short: number
}

interface Searched {
  readonly entries: readonly CallLogEntry[]
  readonly next?: string
}

const LIMIT = 51
const DAY_MS = 86_400_000

/** Each case in turn: the first page, one from any time on, and one of a day. */
export async function measureSearches(
  list: (query: CallQuery) => Promise<Searched>,
  span: Span,
  rounds: number,
  cpuMs: () => number,
): Promise<SearchFigures[]> {
  const spanMs = span.calls * eachMs(span)
  const any = (): number => FIRST_AT + Math.random() * spanMs
  const figures: SearchFigures[] = []
  for (const { name, query } of SEARCHES) {
    const took: number[] = []
    const cpu: number[] = []
    let [found, short] = [0, 0]
    // The first are for plans, and what the database has not in memory.
    for (let round = -3; round < rounds; round++) {
      const from = any()
      const places = [{}, { before: `${firstIdOf(any())}z` }, { from, to: from + DAY_MS }]
      const [start, cpuStart] = [performance.now(), cpuMs()]
      const page = await list({ ...query(), ...places[(round + 3) % 3], limit: LIMIT })
      if (round < 0) continue
      took.push(performance.now() - start)
      cpu.push(cpuMs() - cpuStart)
      found += page.entries.length
      if (page.next !== undefined) short++
    }
    figures.push({
      name,
      p50: shareOf(took, 0.5),
      p95: shareOf(took, 0.95),
      max: shareOf(took, 1),
      cpuP95: shareOf(cpu, 0.95),
      found: found / rounds,
      short: short / rounds,
    })
  }
  return figures
}

function shareOf(values: readonly number[], share: number): number {
  const sorted = values.toSorted((a, b) => a - b)
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? Number.NaN
}

export function searchTable(figures: readonly SearchFigures[]): string {
  const lines = figures.map(({ name, p50, p95, max, cpuP95, found, short }) => {
    const cells = [name, p50.toFixed(1), p95.toFixed(1), max.toFixed(1), cpuP95.toFixed(1), found.toFixed(0)]
    return `| ${[...cells, `${(short * 100).toFixed(0)} %`].join(' | ')} |`
  })
  const head = ['', 'p50, ms', 'p95, ms', 'max, ms', 'CPU p95, ms', 'found', 'short']
  return [`| ${head.join(' | ')} |`, `|${' --- |'.repeat(head.length)}`, ...lines].join('\n')
}
