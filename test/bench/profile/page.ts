/** The page of text that explains profiles: targets side by side, then where the time of ours goes. */
import type { Profiler } from 'node:inspector'
import { microsByRoom } from './attribution.ts'

/** A case of a target. */
export interface Measured {
  readonly target: string
  readonly case: string
  /** Calls while it was profiled. */
  readonly calls: number
  /** CPU time of a call without the profiler, all threads together. */
  readonly cpuMicros: number
  /** CPU time from the start of the process to the first answer. */
  readonly startMs: number
  readonly start: Profiler.Profile
  readonly profile: Profiler.Profile
}

const MOST_ROOMS = 24
const RELAYS = new Set(['relay', 'portkey'])
const NAME_WIDTH = 34
const CELL_WIDTH = 14

/** @param measured in the order of the columns. */
export function profilePage(measured: readonly Measured[]): string {
  const targets = [...new Set(measured.map(({ target }) => target))]
  const cases = [...new Set(measured.map((each) => each.case))]
  const of = (target: string, name: string) =>
    measured.find((each) => each.target === target && each.case === name)
  const firstOf = targets.map((target) => measured.find((each) => each.target === target) as Measured)
  const side = [
    ['CPU of a call, µs', ...targets],
    ...cases.map((name) => [name, ...targets.map((target) => figure(of(target, name)?.cpuMicros))]),
    ['start to the first answer, ms', ...firstOf.map(({ startMs }) => figure(startMs))],
  ]
  const profiled = measured.filter(({ target }) => !RELAYS.has(target))
  const calls = byRoom(
    ['µs of a call', ...profiled.map((each) => each.target.replace('whole-', ''))],
    ['', ...profiled.map((each) => each.case)],
    profiled.map(({ profile, calls, cpuMicros }) => perRoom(profile, calls, cpuMicros)),
  )
  const starts = firstOf.filter(({ target }) => !RELAYS.has(target))
  const start = byRoom(
    ['ms of a start', ...starts.map(({ target }) => target.replace('whole-', ''))],
    undefined,
    starts.map(({ start, startMs }) => perRoom(start, 1000, startMs)),
  )
  return [
    table(side),
    'By room. Packages and Node count for the room that calls them, as does lib/core.',
    calls,
    start,
    '',
  ].join('\n\n')
}

/** Shares of a profile, spread over the CPU time that was measured without the profiler. */
function perRoom(profile: Profiler.Profile, divisor: number, measured: number): Map<string, number> {
  const rooms = new Map([...microsByRoom(profile)].map(([room, micros]) => [room, micros / divisor]))
  const sampled = [...rooms.values()].reduce((sum, each) => sum + each, 0)
  // Sampling makes a thread slower; what it cannot see runs in other threads.
  const factor = Math.min(1, measured / sampled)
  const spread = new Map([...rooms].map(([room, each]) => [room, each * factor]))
  if (factor === 1) spread.set('other threads', measured - sampled)
  return spread
}

function byRoom(
  head: string[],
  subhead: string[] | undefined,
  columns: readonly Map<string, number>[],
): string {
  const largest = new Map<string, number>()
  for (const column of columns)
    for (const [room, each] of column) largest.set(room, Math.max(each, largest.get(room) ?? 0))
  const rooms = [...largest].sort(([, one], [, other]) => other - one).map(([room]) => room)
  const [shown, others] = [rooms.slice(0, MOST_ROOMS), rooms.slice(MOST_ROOMS)]
  const sumOf = (column: Map<string, number>, of: readonly string[]) =>
    of.reduce((sum, room) => sum + (column.get(room) ?? 0), 0)
  return table([
    head,
    ...(subhead ? [subhead] : []),
    ...shown.map((room) => [room, ...columns.map((column) => figure(column.get(room)))]),
    ...(others.length > 0 ? [['all others', ...columns.map((column) => figure(sumOf(column, others)))]] : []),
    ['total', ...columns.map((column) => figure(sumOf(column, rooms)))],
  ])
}

function table(rows: readonly string[][]): string {
  return rows
    .map(
      ([name = '', ...cells]) =>
        name.padEnd(NAME_WIDTH) + cells.map((cell) => cell.padStart(CELL_WIDTH)).join(''),
    )
    .map((line) => line.trimEnd())
    .join('\n')
}

function figure(value: number | undefined): string {
  if (value === undefined) return '–'
  return value < 10 ? value.toFixed(1) : Math.round(value).toLocaleString('en')
}
