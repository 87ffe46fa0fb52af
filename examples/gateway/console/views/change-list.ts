import type { ChangeAnswer as Change } from 'express-model-gateway/admin'
import { type Child, h } from '../element.ts'
import { listedMoment } from '../format.ts'
import { type Filter, filterForm, filtersIn } from '../parts/filters.ts'
import { recordLink } from '../parts/links.ts'
import { listing } from '../parts/listing.ts'
import type { Column } from '../parts/table.ts'
import type { ViewContent, ViewContext } from '../view.ts'

const FILTERS: readonly Filter[] = [
  { name: 'subject', label: 'Subject', hint: 'Id of an account, key, line, ticket, video.' },
]

/** Lists the changes that operators have made. */
export function changeList(context: ViewContext): ViewContent {
  const list = listing(context, {
    what: 'changes',
    path: 'admin/changes',
    query: filtersIn(context, FILTERS),
    columns: columnsOf(context),
    empty: 'Nothing was changed yet.',
  })
  return { title: 'Audit log', content: [filterForm(context, 'changes', FILTERS), list] }
}

function columnsOf({ session }: ViewContext): readonly Column<Change>[] {
  return [
    { name: 'Time', cell: ({ at }) => listedMoment(at) },
    { name: 'Operator', cell: ({ actor }) => actor },
    { name: 'Action', cell: ({ action }) => h('span', { class: 'mono' }, action) },
    {
      name: 'Subject',
      heads: true,
      cell: ({ action, subject }) => recordLink(session, action.split('.', 1)[0] ?? '', subject),
    },
    { name: 'Before → after', cell: ({ before, after }) => differences(before, after) },
    { name: 'Request id', cell: ({ id }) => h('span', { class: 'mono small' }, id) },
  ]
}

/** Shows the members that differ. */
function differences(membersBefore: object | null, membersAfter: object | null): Child {
  const before = new Map(Object.entries(membersBefore ?? {}))
  const after = new Map(Object.entries(membersAfter ?? {}))
  const names = [...new Set([...before.keys(), ...after.keys()])]
  const changed = names.filter((name) => textOf(before.get(name)) !== textOf(after.get(name)))
  if (changed.length === 0) return null
  return h(
    'ul',
    { class: 'differences' },
    changed.map((name) =>
      h(
        'li',
        {},
        `${name}: `,
        before.has(name) && h('del', {}, textOf(before.get(name))),
        before.has(name) && after.has(name) && ' → ',
        after.has(name) && h('ins', {}, textOf(after.get(name))),
      ),
    ),
  )
}

function textOf(value: unknown): string {
  return typeof value === 'string' ? value : (JSON.stringify(value) ?? '')
}
