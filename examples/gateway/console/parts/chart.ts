import { fill, h } from '../element.ts'
import uPlot from '../vendor/uplot.js'
import { table } from './table.ts'

/** A series with its own colour and its name in the legend. */
export interface Series {
  readonly name: string
  readonly colour: 'accent' | 'warn' | 'bad' | 'muted'
  /** A value for each time; null where there is none. */
  readonly values: readonly (number | null)[]
}

/** A chart over time. */
export interface ChartParts {
  readonly title: string
  /** Stacked bars for what adds up; lines for what does not. */
  readonly form: 'bars' | 'lines'
  /** The beginning of each bin. */
  readonly times: readonly Date[]
  readonly series: readonly Series[]
  /** Formats the beginning of a bin: whole for readouts and tables, short for the axis, where it can be empty. */
  time(time: Date, short: boolean): string
  /** Formats a value, such as with its currency: whole for readouts and tables, short for the axis. */
  text(value: number, short: boolean): string
}

const HEIGHT = 190
const LABEL_WIDTH = 64
/** The steps of an axis that counts: there is no half a request. */
const WHOLE_STEPS = Array.from({ length: 15 }, (_, i) => [1, 2, 5].map((step) => step * 10 ** i)).flat()
const FONT = '11px system-ui, sans-serif'

/** Draws a chart as wide as its place. Arrow keys move along it; a table behind it has its values. */
export function chart(parts: ChartParts): HTMLElement {
  const { title, times, series } = parts
  const readout = h('span', { class: 'legend small' })
  const drawing = h('div', {
    class: 'drawing',
    role: 'slider',
    tabindex: 0,
    'aria-label': title,
    'aria-valuemin': 0,
    'aria-valuemax': Math.max(0, times.length - 1),
  })
  const show = (at: number | null | undefined): void => {
    const index = at ?? null
    fill(readout, readings(parts, index))
    const spoken = index ?? times.length - 1
    drawing.setAttribute('aria-valuenow', String(Math.max(0, spoken)))
    drawing.setAttribute('aria-valuetext', spokenAt(parts, spoken))
  }
  show(null)
  let plot: uPlot | undefined
  const dark = matchMedia('(prefers-color-scheme: dark)')
  const repaint = (): void => plot?.redraw(false)
  // A place that has left the page has no width: the plot gives back what it listens to.
  new ResizeObserver(([entry]) => {
    const width = Math.floor(entry?.contentRect.width ?? 0)
    if (width === 0) {
      plot?.destroy()
      plot = undefined
      dark.removeEventListener('change', repaint)
    } else if (plot) plot.setSize({ width, height: HEIGHT })
    else {
      plot = new uPlot(optionsOf(parts, drawing, width, show), dataOf(parts), drawing)
      dark.addEventListener('change', repaint)
    }
  }).observe(drawing)
  drawing.addEventListener('keydown', (event) => {
    const index = steppedTo(event.key, Number(drawing.getAttribute('aria-valuenow')), times.length - 1)
    if (index === undefined || !plot) return
    event.preventDefault()
    plot.setCursor({ left: plot.valToPos(secondsOf(times[index]), 'x'), top: HEIGHT / 3 })
  })
  return h(
    'figure',
    { class: 'plot' },
    h('figcaption', {}, title, series.length > 0 && readout),
    drawing,
    h('details', {}, h('summary', {}, 'As a table'), figures(parts)),
  )
}

function secondsOf(time: Date | undefined): number {
  return (time?.getTime() ?? 0) / 1000
}

function steppedTo(key: string, from: number, last: number): number | undefined {
  const steps = { ArrowLeft: from - 1, ArrowRight: from + 1, Home: 0, End: last }
  const to = Object.entries(steps).find(([name]) => name === key)?.[1]
  return to === undefined ? undefined : Math.min(last, Math.max(0, to))
}

/** Returns the legend, with the values of a bin if one is pointed at. */
function readings({ times, time, series, text }: ChartParts, index: number | null) {
  const at = index === null ? undefined : times[index]
  return [
    at && h('span', { class: 'num' }, time(at, false)),
    series.map(({ name, colour, values }) => {
      const value = index === null ? null : (values[index] ?? null)
      return h(
        'span',
        { class: `swatch swatch-${colour} num` },
        name,
        value !== null && ` ${text(value, false)}`,
      )
    }),
  ]
}

function spokenAt({ times, time, series, text }: ChartParts, index: number): string {
  const at = times[index]
  if (!at) return 'nothing'
  const values = series.map(({ name, values: all }) => {
    const value = all[index] ?? null
    return `${name} ${value === null ? 'none' : text(value, false)}`
  })
  return `${time(at, false)}: ${values.join(', ')}`
}

/** Returns the values as they are drawn: bars stand on the sum of the series before them. */
function dataOf({ form, times, series }: ChartParts): uPlot.AlignedData {
  const sums = times.map(() => 0)
  const drawn = series.map(({ values }) =>
    values.map((value, i) => {
      if (form === 'lines') return value
      sums[i] = (sums[i] ?? 0) + (value ?? 0)
      return sums[i]
    }),
  )
  return [times.map(secondsOf), ...(form === 'bars' ? drawn.reverse() : drawn)]
}

function optionsOf(
  { form, times, series, time, text }: ChartParts,
  place: HTMLElement,
  width: number,
  show: (index: number | null | undefined) => void,
): uPlot.Options {
  const colour = (name: string) => () => getComputedStyle(place).getPropertyValue(`--${name}`)
  const bars = uPlot.paths.bars?.({ size: [0.72, 64] })
  const half = (secondsOf(times[1]) - secondsOf(times[0])) / 2
  const margin = times.length > 1 ? half : 1800
  const axis = { stroke: colour('muted'), font: FONT, ticks: { show: false } }
  const grid = { stroke: colour('line'), width: 1 }
  const drawn = series.map(
    ({ colour: name }): uPlot.Series => ({
      stroke: colour(name),
      ...(form === 'bars'
        ? { fill: colour(name), width: 0, points: { show: false }, ...(bars && { paths: bars }) }
        : { width: 2, points: { show: true, size: 5 } }),
    }),
  )
  const labelled = times.filter((at) => time(at, true) !== '')
  const every = Math.max(1, Math.ceil((LABEL_WIDTH * labelled.length) / Math.max(1, width - 60)))
  return {
    width,
    height: HEIGHT,
    legend: { show: false },
    padding: [10, 8, 0, 0],
    cursor: { y: false, drag: { x: false, y: false }, points: { show: form === 'lines' } },
    scales: {
      x: { range: [secondsOf(times[0]) - margin, secondsOf(times.at(-1)) + margin] },
      y: { range: (_, __, most) => [0, most > 0 ? most * 1.05 : 1] },
    },
    axes: [
      {
        ...axis,
        size: 26,
        grid: { show: false },
        splits: () => labelled.filter((_, i) => i % every === 0).map(secondsOf),
        values: (_, splits) => splits.map((split) => time(new Date(split * 1000), true)),
      },
      {
        ...axis,
        grid,
        ...(series.every(({ values }) => values.every(Number.isInteger)) && { incrs: WHOLE_STEPS }),
        size: (_, values) => 16 + 7 * Math.max(3, ...(values ?? []).map((value) => value.length)),
        values: (_, splits) => splits.map((split) => text(split, true)),
      },
    ],
    series: [{}, ...(form === 'bars' ? drawn.reverse() : drawn)],
    hooks: { setCursor: [({ cursor }) => show(cursor.idx)] },
  }
}

/** A bin that holds something. */
interface Busy {
  readonly time: Date
  readonly i: number
}

function figures({ title, times, time, series, text }: ChartParts): HTMLElement {
  const busy = times
    .map((time, i) => ({ time, i }))
    .filter(({ i }) => series.some(({ values }) => (values[i] ?? 0) !== 0))
  if (busy.length === 0) return h('p', { class: 'empty' }, 'Nothing in this time.')
  return table(
    title,
    [
      { name: 'From', heads: true, cell: (bin: Busy) => time(bin.time, false) },
      ...series.map(({ name, values }) => ({
        name,
        figures: true,
        cell: ({ i }: Busy) => {
          const value = values[i] ?? null
          return value === null ? null : text(value, false)
        },
      })),
    ],
    busy,
  )
}
