import type { Page } from '../api.ts'
import { type Child, h } from '../element.ts'
import { listedMoment } from '../format.ts'
import { field, filterForm } from '../parts/form.ts'
import { emptyState } from '../parts/notice.ts'
import { paged } from '../parts/pager.ts'
import { type Column, table } from '../parts/table.ts'
import type { ViewContent, ViewContext } from '../view.ts'

interface Change {
  readonly id: string
  readonly at: string
  readonly actor: string
  readonly action: string
  readonly subject: string
  readonly before: object | null
  readonly after: object | null
}

/** Lists the changes that operators have made. */
export function changeList({ api, query, signal }: ViewContext): ViewContent {
  const subject = query.get('subject') ?? ''
  const list = paged(
    'changes',
    (cursor) => api.get<Page<Change>>('admin/changes', { subject, cursor, limit: 50 }, signal),
    (rows) => (rows.length === 0 ? emptyState('Nothing was changed yet.') : table('Changes', COLUMNS, rows)),
  )
  const filter = filterForm(
    'changes',
    field({
      name: 'subject',
      label: 'Of',
      hint: 'Id of an account, key, line, ticket, video.',
      attributes: { value: subject },
    }),
  )
  return { title: 'Changes', content: [filter, list] }
}

const COLUMNS: readonly Column<Change>[] = [
  { name: 'Time', cell: ({ at }) => listedMoment(at) },
  { name: 'Who', cell: ({ actor }) => actor },
  { name: 'What', cell: ({ action }) => h('span', { class: 'mono' }, action) },
  { name: 'Of', heads: true, cell: ({ subject }) => subject },
  { name: 'Before → after', cell: ({ before, after }) => differences(before, after) },
  { name: 'Request id', cell: ({ id }) => h('span', { class: 'mono small' }, id) },
]

/** Shows the members that differ. */
function differences(before: object | null, after: object | null): Child {
  const stood = new Map(Object.entries(before ?? {}))
  const stands = new Map(Object.entries(after ?? {}))
  const names = [...new Set([...stood.keys(), ...stands.keys()])]
  const changed = names.filter((name) => textOf(stood.get(name)) !== textOf(stands.get(name)))
  if (changed.length === 0) return null
  return h(
    'ul',
    { class: 'differences' },
    changed.map((name) =>
      h(
        'li',
        {},
        `${name}: `,
        stood.has(name) && h('del', {}, textOf(stood.get(name))),
        stood.has(name) && stands.has(name) && ' → ',
        stands.has(name) && h('ins', {}, textOf(stands.get(name))),
      ),
    ),
  )
}

function textOf(value: unknown): string {
  return typeof value === 'string' ? value : (JSON.stringify(value) ?? '')
}
