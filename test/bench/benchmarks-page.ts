/** Writes the sections of docs/benchmarks.md that benchmarks measure. The rest of the page is written by hand. */
import type { ThroughputRow } from './report.ts'

/** The targets of the page, in its order. */
const LABELS: Readonly<Record<string, string>> = {
  relay: '`relay`',
  portkey: 'Portkey 1.15.2, which only relays',
  'express-floor': 'Express with one route, both bodies parsed',
  libraries: '… with zod, rate-limiter-flexible and seven middlewares',
  chain: 'chain (key, body, routing, metering, call log)',
  'chain-redis': '… with limits in Redis',
  'whole-memory': 'whole chain in memory (billing too)',
  'whole-observed': '… with metrics and traces',
  'whole-translated': '… on a line of the other protocol',
  'whole-sqlite': 'whole chain in SQLite',
  'whole-postgres': 'whole chain in Redis and Postgres',
}

/** The cases of the table. */
export const CASES_OF_PAGE = ['plain-32', 'plain-1', 'coalesced-32', 'long-16']

/** The figures of a run, with its setting. */
export interface ThroughputRun {
  /** Such as `2026-01-31`. */
  readonly date: string
  readonly machine: string
  readonly rounds: number
  readonly seconds: number
  readonly rows: readonly ThroughputRow[]
}

/**
 * Returns the page with another text between the markers `<!-- bench NAME -->` and `<!-- /bench NAME -->`.
 *
 * @throws if the page has no such section.
 */
export function withSection(page: string, name: string, text: string): string {
  const [begin, end] = [`<!-- bench ${name} -->`, `<!-- /bench ${name} -->`]
  const [from, to] = [page.indexOf(begin), page.indexOf(end)]
  if (from < 0 || to < from) throw new Error(`docs/benchmarks.md has no ${begin} … ${end}`)
  return `${page.slice(0, from + begin.length)}\n\n${text.trim()}\n\n${page.slice(to)}`
}

/** Returns the section of a run: the same results give the same text. */
export function throughputSection({ date, machine, rounds, seconds, rows }: ThroughputRun): string {
  const of = (target: string, name: string) => rows.find((row) => row.target === target && row.case === name)
  const targets = Object.keys(LABELS).filter((target) => rows.some((row) => row.target === target))
  const lines = targets.map((target) => {
    const plain = of(target, 'plain-32')
    return [
      LABELS[target],
      whole(plain?.perSecond),
      plain?.ratio?.toFixed(2) ?? '',
      plain?.p99Ms.toFixed(1) ?? '',
      of(target, 'plain-1')?.addedP50Ms?.toFixed(2) ?? '',
      whole(of(target, 'coalesced-32')?.perSecond),
      whole(of(target, 'long-16')?.perSecond),
    ]
  })
  const head = ['', 'calls/s', 'ratio', 'p99 ms', 'added ms', 'streamed chunks/s', '330 KB prompts/s']
  return [
    `${date}, ${machine}. One core each, 32 connections (long prompts: 16), medians of ${rounds} rounds of ${seconds} s. ` +
      '`relay` only passes requests on; `added` is the p50 above it on one connection:',
    table(head, lines),
  ].join('\n\n')
}

/** The figures of a number of workers. */
interface WorkersRow {
  /** The value of `WORKERS`; `none` for one process without workers. */
  readonly shape: string
  readonly perSecond: number
  /** Of the process that is started and its workers, in microseconds of a core per call. */
  readonly cpuMicros: number
  /** Of the process that is started. */
  readonly firstMicros: number
}

/** The figures of a run with several numbers of workers, with its setting. */
interface WorkersRun extends Omit<ThroughputRun, 'rows'> {
  readonly stores: string
  readonly connections: number
  readonly rows: readonly WorkersRow[]
}

/** Returns the section of a run with several numbers of workers. */
export function workersSection(run: WorkersRun): string {
  const { date, machine, stores, connections, rounds, seconds } = run
  const head = ['`WORKERS`', 'calls/s', 'CPU µs a call', 'first process']
  const lines = run.rows.map(({ shape, perSecond, cpuMicros, firstMicros }) => [
    shape,
    whole(perSecond),
    whole(cpuMicros),
    whole(firstMicros),
  ])
  return [
    `${date}, ${machine}, shared with the load. ${stores === 'sqlite' ? 'SQLite' : 'Redis and Postgres'}, ${connections} connections, medians of ${rounds} rounds of ${seconds} s:`,
    table(head, lines),
  ].join('\n\n')
}

function table(head: readonly string[], lines: readonly (readonly (string | undefined)[])[]): string {
  return [head, head.map(() => '---'), ...lines].map((cells) => `| ${cells.join(' | ')} |`).join('\n')
}

function whole(value: number | undefined): string {
  return value === undefined ? '' : Math.round(value).toLocaleString('en')
}
