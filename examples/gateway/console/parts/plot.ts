import { type Child, fill, h, svg } from '../element.ts'
import { clock, day } from '../format.ts'
import { scaleOf } from './plot-scale.ts'
import { table } from './table.ts'

/** A series with its own colour and its name in the legend. */
export interface Series {
  readonly name: string
  /** The name of its colour. */
  readonly colour: 'accent' | 'bad'
  /** A value for each bin. */
  readonly values: readonly number[]
}

/** A bar plot over time; several series are stacked. */
export interface PlotParts {
  readonly title: string
  /** What the vertical axis counts. */
  readonly unit: string
  readonly times: readonly Date[]
  readonly binMs: number
  readonly series: readonly Series[]
  /** Formats a value, such as with its currency. */
  text(value: number): string
}

const HEIGHT = 190
const EDGE = { top: 22, right: 8, bottom: 24, left: 56 }
const LABEL_WIDTH = 76
const DAY_MS = 86_400_000

/** Draws a plot at the full width, again when the width changes. A table behind it has the values. */
export function plot(parts: PlotParts): HTMLElement {
  const drawing = h('div', { class: 'drawing' })
  const draw = (width: number): void => fill(drawing, drawn(parts, width))
  new ResizeObserver(([entry]) => {
    const width = Math.floor(entry?.contentRect.width ?? 0)
    if (width > 0) draw(width)
  }).observe(drawing)
  return h(
    'figure',
    { class: 'plot' },
    h('figcaption', {}, parts.title, parts.series.length > 1 && legend(parts.series)),
    drawing,
    h('details', {}, h('summary', {}, 'As a table'), figures(parts)),
  )
}

function legend(series: readonly Series[]): HTMLElement {
  return h(
    'span',
    { class: 'legend small' },
    series.map(({ name, colour }) => h('span', { class: `swatch swatch-${colour}` }, name)),
  )
}

function drawn({ title, unit, times, binMs, series, text }: PlotParts, width: number): SVGElement {
  const sums = times.map((_, i) => series.reduce((sum, { values }) => sum + (values[i] ?? 0), 0))
  const { most, ticks } = scaleOf(Math.max(0, ...sums))
  const innerWidth = width - EDGE.left - EDGE.right
  const innerHeight = HEIGHT - EDGE.top - EDGE.bottom
  const x = (i: number): number => EDGE.left + (i / times.length) * innerWidth
  const y = (value: number): number => EDGE.top + innerHeight * (1 - value / most)
  const barWidth = Math.max(1, (innerWidth / times.length) * 0.72)
  const offset = (innerWidth / times.length - barWidth) / 2

  const grid = ticks.map((tick) => [
    svg('line', {
      class: tick === 0 ? 'axis' : 'grid',
      x1: EDGE.left,
      x2: width - EDGE.right,
      y1: y(tick),
      y2: y(tick),
    }),
    svg('text', { class: 'tick', x: EDGE.left - 8, y: y(tick) + 4, 'text-anchor': 'end' }, text(tick)),
  ])
  const bars = times.map((time, i) => {
    let below = 0
    const stack = series.map(({ name, colour, values }): Child => {
      const value = values[i] ?? 0
      const [top, bottom] = [y(below + value), y(below)]
      below += value
      if (value === 0) return null
      const words = svg('title', {}, `${day(time)} ${clock(time)}, ${name}: ${text(value)}`)
      return svg(
        'rect',
        {
          class: `fill-${colour}`,
          x: x(i) + offset,
          y: top,
          width: barWidth,
          height: Math.max(1, bottom - top),
        },
        words,
      )
    })
    return stack
  })
  const every = Math.max(1, Math.ceil((LABEL_WIDTH * times.length) / innerWidth))
  const labels = times.map((time, i): Child => {
    if (i % every !== 0 || x(i) + LABEL_WIDTH / 2 > width) return null
    return svg(
      'text',
      { class: 'tick', x: x(i) + offset, y: HEIGHT - 6 },
      binMs < DAY_MS / 4 ? clock(time) : day(time).slice(5),
    )
  })
  return svg(
    'svg',
    { width, height: HEIGHT, role: 'img', 'aria-label': `${title}; the figures stand in the table below` },
    svg('text', { class: 'tick', x: 0, y: 12 }, unit),
    grid,
    bars,
    labels,
  )
}

/** A bin that holds something. */
interface Busy {
  readonly time: Date
  readonly i: number
}

function figures({ title, times, series, text }: PlotParts): HTMLElement {
  const busy = times
    .map((time, i) => ({ time, i }))
    .filter(({ i }) => series.some(({ values }) => (values[i] ?? 0) !== 0))
  if (busy.length === 0) return h('p', { class: 'empty' }, 'Nothing in this time.')
  return table(
    title,
    [
      { name: 'From', heads: true, cell: ({ time }: Busy) => `${day(time)} ${clock(time)}` },
      ...series.map(({ name, values }) => ({
        name,
        figures: true,
        cell: ({ i }: Busy) => text(values[i] ?? 0),
      })),
    ],
    busy,
  )
}
