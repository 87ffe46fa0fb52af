import type { DifferenceAnswer as Difference } from 'express-model-gateway/admin'
import { h } from '../element.ts'
import { subjectLink } from '../parts/links.ts'
import { listing } from '../parts/listing.ts'
import type { Column } from '../parts/table.ts'
import type { ViewContent, ViewContext } from '../view.ts'

/** Lists the differences between the config and the database. */
export function driftList(context: ViewContext): ViewContent {
  const list = listing(context, {
    what: 'differences',
    path: 'admin/drift',
    columns: columnsOf(context),
    empty: 'Config and database agree.',
  })
  const explanation =
    'Differences between config and database. With the authority "database", the database applies: change either until both agree. With "config", a reload applies the config.'
  return { title: 'Drift', content: [h('p', { class: 'muted' }, explanation), list] }
}

const WORDS = {
  changed: 'different',
  missing: 'not in the database',
  not_in_config: 'no longer in the config, and in use',
} as const

function columnsOf({ session }: ViewContext): readonly Column<Difference>[] {
  return [
    {
      name: 'Subject',
      heads: true,
      cell: ({ kind, id, difference }) =>
        difference === 'missing' ? `${kind} ${id}` : subjectLink(session, `${kind}:${id}`),
    },
    { name: 'Difference', cell: ({ difference }) => WORDS[difference] },
    { name: 'Members', cell: ({ members }) => members.join(', ') },
  ]
}
