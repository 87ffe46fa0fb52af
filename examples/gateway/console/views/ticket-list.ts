import type { Page } from '../api.ts'
import { h } from '../element.ts'
import { listedMoment } from '../format.ts'
import { callLink } from '../parts/call-columns.ts'
import { choice, field, filterForm, form } from '../parts/form.ts'
import { emptyState, notice } from '../parts/notice.ts'
import { paged } from '../parts/pager.ts'
import { callStatus } from '../parts/status.ts'
import { type Column, table } from '../parts/table.ts'
import { ticketBadge } from '../parts/ticket-badge.ts'
import { linkTo } from '../router.ts'
import type { Ticket } from '../tickets.ts'
import type { ViewContent, ViewContext } from '../view.ts'

const EXCERPT = 120

/** Lists all tickets for operators; holders of keys find a ticket by its id. */
export function ticketList(context: ViewContext): ViewContent {
  return { title: 'Tickets', content: context.session.kind === 'admin' ? allTickets(context) : findTicket() }
}

function findTicket() {
  return [
    form({
      label: 'Find a ticket',
      submit: 'Find',
      fields: field({
        name: 'id',
        label: 'Ticket number',
        hint: 'A ticket is filed on the page of the call that it is about.',
        attributes: { class: 'mono', spellcheck: 'false', size: 40 },
      }),
      act({ id = '' }) {
        if (id === '') return notice('bad', 'Type in the number of a ticket.')
        location.hash = linkTo('tickets', id)
        return null
      },
    }),
    h('p', {}, h('a', { href: linkTo('') }, 'Find the call'), ' to file a new one.'),
  ]
}

function allTickets({ api, query, signal }: ViewContext) {
  const status = query.get('status') ?? ''
  const list = paged(
    'tickets',
    (cursor) => api.get<Page<Ticket>>('admin/tickets', { status, cursor, limit: 50 }, signal),
    (rows) => (rows.length === 0 ? emptyState('No tickets that fit.') : table('Tickets', COLUMNS, rows)),
  )
  const options = [
    ['', 'all'],
    ['open', 'open'],
    ['answered', 'answered'],
    ['closed', 'closed'],
  ] as const
  const filter = filterForm('tickets', choice({ name: 'status', label: 'Status' }, options, status))
  return [filter, list]
}

const COLUMNS: readonly Column<Ticket>[] = [
  { name: 'Filed', cell: ({ created_at }) => listedMoment(created_at) },
  {
    name: 'Ticket',
    heads: true,
    cell: ({ id }) => h('a', { href: linkTo('tickets', id), class: 'mono' }, id),
  },
  { name: 'Status', cell: (ticket) => ticketBadge(ticket) },
  { name: 'Account', cell: ({ account }) => h('a', { href: linkTo('accounts', account) }, account) },
  { name: 'Message', cell: ({ message }) => excerpt(message) },
  { name: 'Call', cell: ({ request_id }) => callLink(request_id) },
  { name: 'It ended', cell: ({ call }) => (call ? callStatus(call) : 'no longer in the log') },
]

function excerpt(text: string): string {
  return text.length > EXCERPT ? `${text.slice(0, EXCERPT)}…` : text
}
