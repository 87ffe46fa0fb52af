import { median } from '../statistics.ts'

/** Something that is done the same way on a small and on a large side. */
export interface ScaleCase<Side> {
  readonly name: string
  /** How often it is done in one round, one after the other. */
  readonly times: number
  /** How many of them one run does: what takes next to no time is timed together. Defaults to 1. */
  readonly atOnce?: number
  /** Not measured: what the runs of one round need. */
  readonly prepare?: (side: Side, times: number) => Promise<void>
  readonly run: (side: Side, i: number) => unknown
}

/** Microseconds of one time, medians over rounds. `ratio` is large ÷ small within a round. */
export interface ScaleRow {
  readonly group: string
  readonly name: string
  readonly small: number
  readonly large: number
  /** Of the middle time of each round. */
  readonly ratio: number
  /** The least and the greatest but a tenth of the rounds at either end. */
  readonly spread: readonly [number, number]
  /** Of all times of a round together, with all that is rarely slow; null where it is the same figure. */
  readonly meanRatio: number | null
}

interface Sample {
  readonly middle: number
  readonly mean: number
}

/** Each case on both sides in turn, the sides changing places from round to round. */
export async function compareSides<Side>(
  group: string,
  cases: readonly ScaleCase<Side>[],
  sides: { readonly small: Side; readonly large: Side },
  rounds: number,
): Promise<ScaleRow[]> {
  const samples = cases.map(() => ({ small: [] as Sample[], large: [] as Sample[] }))
  for (let round = -1; round < rounds; round++) {
    for (const [at, one] of cases.entries()) {
      for (const which of round % 2 === 0 ? (['small', 'large'] as const) : (['large', 'small'] as const)) {
        const sample = await measure(one, sides[which])
        // The first round is for the compiler, and for plans.
        if (round >= 0) samples[at]?.[which].push(sample)
      }
    }
  }
  return cases.map(({ name, times }, at) => {
    const { small = [], large = [] } = samples[at] ?? {}
    return scaleRow(group, name, small, large, times > 1)
  })
}

/** Compares what was measured in the same rounds. */
function scaleRow(
  group: string,
  name: string,
  small: readonly Sample[],
  large: readonly Sample[],
  withMean: boolean,
): ScaleRow {
  const ratios = (read: (sample: Sample) => number) =>
    large.map((sample, round) => read(sample) / read(small[round] ?? sample)).sort((a, b) => a - b)
  const middles = ratios(({ middle }) => middle)
  const cut = Math.floor(middles.length / 10)
  return {
    group,
    name,
    small: median(small.map(({ middle }) => middle)),
    large: median(large.map(({ middle }) => middle)),
    ratio: median(middles),
    spread: [middles[cut] ?? Number.NaN, middles.at(-1 - cut) ?? Number.NaN],
    meanRatio: withMean ? median(ratios(({ mean }) => mean)) : null,
  }
}

async function measure<Side>(
  { times, atOnce = 1, prepare, run }: ScaleCase<Side>,
  side: Side,
): Promise<Sample> {
  await prepare?.(side, times)
  const took: number[] = []
  for (let i = 0; i < times; i++) {
    const start = performance.now()
    const done = run(side, i)
    if (done instanceof Promise) await done
    took.push(((performance.now() - start) * 1000) / atOnce)
  }
  return { middle: median(took), mean: took.reduce((sum, one) => sum + one, 0) / times }
}

export function scaleTable(rows: readonly ScaleRow[]): string {
  const lines = rows.map(({ group, name, small, large, ratio, spread, meanRatio }) => {
    const [least, greatest] = spread.map((value) => value.toFixed(2))
    const cells = [group, name, micros(small), micros(large), ratio.toFixed(2), `${least}–${greatest}`]
    return `| ${[...cells, meanRatio === null ? '' : meanRatio.toFixed(2)].join(' | ')} |`
  })
  const head = ['', '', 'small, µs', 'large, µs', 'ratio', 'spread', 'of means']
  return [`| ${head.join(' | ')} |`, `|${' --- |'.repeat(head.length)}`, ...lines].join('\n')
}

function micros(value: number): string {
  return value.toFixed(value < 10 ? 2 : value < 100 ? 1 : 0)
}
