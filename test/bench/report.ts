/** Rounds in, one markdown table a kind of case out. Ratios are medians over rounds of values of the same round. */
import type { HeldStreams } from './held-streams.ts'
import { median, percentile } from './statistics.ts'
import type { Measurement, ThroughputCase } from './throughput.ts'

/** One line of the throughput table. `cpuRatio`: units for the same CPU time, as a share of the relay's. */
export interface ThroughputRow {
  case: string
  target: string
  unit: string
  perSecond: number
  p50Ms: number
  p99Ms: number
  addedP50Ms: number | null
  ratio: number | null
  ratioRange: [number, number] | null
  cpuRatio: number | null
  targetCpu: number | null
  loadCoreBusy: number | null
  othersOnTargetCore: number | null
  cpuMicrosPerUnit: number | null
}

/** `rounds[i]` are the measurements of `names[i]`; the ratios are to the target named `base`. */
export function throughputRows(
  { name, unit }: ThroughputCase,
  names: string[],
  rounds: Measurement[][],
  base: string,
): ThroughputRow[] {
  const baseRounds = rounds[names.indexOf(base)]
  return names.map((target, i) => {
    const own = rounds[i] ?? []
    const middle = (read: (m: Measurement) => number | null) => medianOf(own.map(read))
    const against = (compare: (own: Measurement, base: Measurement) => number | null) =>
      own.map((m, round) => (baseRounds?.[round] === undefined ? null : compare(m, baseRounds[round])))
    const ratios = against((m, b) => m.perSecond / b.perSecond)
    return {
      case: name,
      target,
      unit,
      perSecond: median(own.map((m) => m.perSecond)),
      p50Ms: median(own.map((m) => m.p50Ms)),
      p99Ms: median(own.map((m) => m.p99Ms)),
      addedP50Ms: medianOf(against((m, b) => m.p50Ms - b.p50Ms)),
      ratio: medianOf(ratios),
      ratioRange:
        known(ratios).length === 0 ? null : [Math.min(...known(ratios)), Math.max(...known(ratios))],
      cpuRatio: medianOf(against((m, b) => share(b.cpuMicrosPerUnit, m.cpuMicrosPerUnit))),
      targetCpu: middle((m) => m.targetCpu),
      loadCoreBusy: middle((m) => m.loadCoreBusy),
      othersOnTargetCore: middle((m) => m.othersOnTargetCore),
      cpuMicrosPerUnit: middle((m) => m.cpuMicrosPerUnit),
    }
  })
}

export function throughputTable(rows: ThroughputRow[]): string {
  return table(
    [
      ['case', 'target', 'rate', 'p50 ms', 'p99 ms', 'added p50 ms', 'ratio (range)', 'CPU ratio'],
      ['target CPU', 'load core', 'CPU µs each'],
    ].flat(),
    rows.map((row) => [
      row.case,
      row.target,
      `${Math.round(row.perSecond).toLocaleString('en')} ${row.unit}/s`,
      row.p50Ms.toFixed(3),
      row.p99Ms.toFixed(2),
      fixed(row.addedP50Ms, 3),
      row.ratioRange === null
        ? '–'
        : `${fixed(row.ratio, 2)} (${row.ratioRange.map((r) => r.toFixed(2)).join('–')})`,
      fixed(row.cpuRatio, 2),
      percent(row.targetCpu),
      percent(row.loadCoreBusy),
      fixed(row.cpuMicrosPerUnit, row.unit === 'chunks' ? 2 : 0),
    ]),
  )
}

/** `measured[i]` are the rounds of `names[i]`, each the times of its requests in milliseconds. */
export function firstByteTable(names: string[], measured: number[][][], base: string): string {
  const middles = measured.map((rounds) => rounds.map((times) => percentile(times, 50)))
  const baseMiddles = middles[names.indexOf(base)]
  return table(
    ['target', 'first byte p50 ms', 'p99 ms', 'held back p50 ms'],
    names.map((target, i) => [
      target,
      median(middles[i] ?? []).toFixed(3),
      median((measured[i] ?? []).map((times) => percentile(times, 99))).toFixed(2),
      fixed(medianOf((middles[i] ?? []).map((ms, round) => ms - (baseMiddles?.[round] ?? Number.NaN))), 3),
    ]),
  )
}

export function heldStreamsTable(names: string[], measured: HeldStreams[][], base: string): string {
  const middle = (i: number, key: keyof HeldStreams) => median((measured[i] ?? []).map((held) => held[key]))
  const baseKib = middle(names.indexOf(base), 'kibPerStreamCollected')
  return table(
    ['target', 'open streams', 'KiB a stream', 'after a collection', 'above the relay'],
    names.map((target, i) => [
      target,
      String(middle(i, 'streams')),
      middle(i, 'kibPerStream').toFixed(1),
      middle(i, 'kibPerStreamCollected').toFixed(1),
      Number.isNaN(baseKib) ? '–' : (middle(i, 'kibPerStreamCollected') - baseKib).toFixed(1),
    ]),
  )
}

/** With its core as busy as this, upstream and load generator are what is measured. */
const LOAD_BOUND = 0.9
/** From this share of the target's core on, other processes spoil the figures. */
const DISTURBED = 0.05

/** Returns the notes that a reader of the table needs before trusting a ratio in it. */
export function throughputNotes(rows: ThroughputRow[]): string[] {
  const measured = rows.filter(({ ratio }) => ratio !== null)
  const places = (concerned: ThroughputRow[]) =>
    concerned.map((row) => `${row.case} ${row.target}`).join(', ')
  const loadBound = measured.filter(({ loadCoreBusy }) => (loadCoreBusy ?? 0) >= LOAD_BOUND)
  const disturbed = measured.filter(({ othersOnTargetCore }) => (othersOnTargetCore ?? 0) >= DISTURBED)
  const notes: string[] = []
  if (loadBound.length > 0)
    notes.push(`- The load core was full, so upstream and load generator set the pace: ${places(loadBound)}.`)
  if (disturbed.length > 0) {
    const worst = Math.max(...disturbed.map((row) => row.othersOnTargetCore ?? 0))
    notes.push(`- Other processes took up to ${percent(worst)} of the target's core: ${places(disturbed)}.`)
  }
  return notes
}

function table(head: string[], rows: string[][]): string {
  return [head, head.map(() => '---'), ...rows].map((cells) => `| ${cells.join(' | ')} |`).join('\n')
}

const known = (values: (number | null)[]): number[] => values.filter((value) => value !== null)

function medianOf(values: (number | null)[]): number | null {
  const present = known(values)
  return present.length === 0 ? null : median(present)
}

function share(part: number | null, whole: number | null): number | null {
  return part === null || whole === null || whole === 0 ? null : part / whole
}

const fixed = (value: number | null, digits: number) =>
  value === null || Number.isNaN(value) ? '–' : value.toFixed(digits)
const percent = (value: number | null) => (value === null ? '–' : `${Math.round(value * 100)} %`)
