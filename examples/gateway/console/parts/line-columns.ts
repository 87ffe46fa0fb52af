import { h } from '../element.ts'
import { count, duration, NOTHING } from '../format.ts'
import { circuitBadge, type Line, workersNote } from '../lines.ts'
import { badge } from './status.ts'
import type { Column } from './table.ts'

/** The columns of lines for all users. */
export const LINE_COLUMNS: readonly Column<Line>[] = [
  {
    name: 'Line',
    heads: true,
    names: true,
    cell: ({ id, provider, protocol, region }) => [
      h('div', {}, id),
      h(
        'small',
        { class: 'muted' },
        [provider, protocol, region].filter((word) => word !== null).join(' · '),
      ),
    ],
  },
  {
    name: 'State',
    cell: ({ enabled, switched }) => [
      badge(enabled ? 'good' : 'off', enabled ? 'on' : 'off'),
      typeof switched === 'boolean' && h('div', {}, h('small', { class: 'muted' }, 'switched by hand')),
    ],
  },
  {
    name: 'Circuit',
    cell: (line) => {
      const note = workersNote(line)
      return [
        circuitBadge(line),
        note !== null && h('div', {}, h('small', { class: 'muted' }, note)),
        line.rest_ms !== undefined &&
          line.rest_ms > 0 &&
          h('div', {}, h('small', {}, `rests ${Math.ceil(line.rest_ms / 1000)} s`)),
      ]
    },
  },
  { name: 'Priority', figures: true, cell: ({ priority }) => priority },
  { name: 'Weight', figures: true, cell: ({ weight }) => weight },
]

/** The additional columns for operators. */
export const LINE_FIGURES: readonly Column<Line>[] = [
  ...LINE_COLUMNS,
  { name: 'First byte', figures: true, cell: ({ first_byte_ms }) => duration(first_byte_ms) },
  { name: 'Tokens/s', figures: true, cell: ({ tokens_per_second }) => count(tokens_per_second) },
  { name: 'In flight', figures: true, cell: ({ in_flight }) => count(in_flight) },
  { name: 'Attempts/min', figures: true, cell: ({ recent_attempts }) => count(recent_attempts) },
  { name: 'Errors', figures: true, cell: ({ error_share }) => errorShare(error_share) },
]

function errorShare(share: number | null | undefined): string {
  return share === null || share === undefined ? NOTHING : `${Math.round(share * 1000) / 10} %`
}
