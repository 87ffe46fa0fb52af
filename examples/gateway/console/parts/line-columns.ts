import { h } from '../element.ts'
import { count, duration, NOTHING } from '../format.ts'
import { circuitBadge, type Line, workersNote } from '../lines.ts'
import type { Session } from '../session.ts'
import { recordLink } from './links.ts'
import { badge } from './status.ts'
import type { Column } from './table.ts'

/** The columns of lines; operators see how each does. */
export function lineColumns(session: Session): readonly Column<Line>[] {
  const line: Column<Line> = {
    name: 'Line',
    heads: true,
    names: true,
    cell: ({ id, provider, protocol, region }) => [
      h('div', {}, recordLink(session, 'line', id)),
      h(
        'small',
        { class: 'muted' },
        [provider, protocol, region].filter((word) => word !== null).join(' · '),
      ),
    ],
  }
  return [line, ...STATES, ...(session.kind === 'admin' ? FIGURES : [])]
}

const STATES: readonly Column<Line>[] = [
  {
    name: 'State',
    cell: ({ enabled, switched, availability }) => [
      availability === 'down'
        ? badge('bad', 'down')
        : badge(enabled ? 'good' : 'off', enabled ? 'on' : 'off'),
      typeof switched === 'boolean' && h('div', {}, h('small', { class: 'muted' }, 'manual override')),
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

const FIGURES: readonly Column<Line>[] = [
  { name: 'First byte', figures: true, cell: ({ first_byte_ms }) => duration(first_byte_ms) },
  { name: 'Tokens/s', figures: true, cell: ({ tokens_per_second }) => count(tokens_per_second) },
  { name: 'In flight', figures: true, cell: ({ in_flight }) => count(in_flight) },
  { name: 'Attempts/min', figures: true, cell: ({ recent_attempts }) => count(recent_attempts) },
  { name: 'Errors', figures: true, cell: ({ error_share }) => errorShare(error_share) },
]

function errorShare(share: number | null | undefined): string {
  return share === null || share === undefined ? NOTHING : `${Math.round(share * 1000) / 10} %`
}
