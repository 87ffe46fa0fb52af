import { h } from '../element.ts'
import { listedMoment } from '../format.ts'
import { ACCOUNT, type Filter, filterForm, filtersIn, oneOf } from '../parts/filters.ts'
import { field, form } from '../parts/form.ts'
import { callLink, recordLink } from '../parts/links.ts'
import { listing } from '../parts/listing.ts'
import { notice } from '../parts/notice.ts'
import { callStatus } from '../parts/status.ts'
import type { Column } from '../parts/table.ts'
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

const FILTERS: readonly Filter[] = [oneOf('status', 'Status', ['open', 'answered', 'closed']), ACCOUNT]

function allTickets(context: ViewContext) {
  const list = listing(context, {
    what: 'tickets',
    path: 'admin/tickets',
    query: filtersIn(context, FILTERS),
    columns: columnsOf(context),
  })
  return [filterForm(context, 'tickets', FILTERS), list]
}

function columnsOf({ session }: ViewContext): readonly Column<Ticket>[] {
  return [
    { name: 'Filed', cell: ({ created_at }) => listedMoment(created_at) },
    {
      name: 'Ticket',
      heads: true,
      cell: ({ id }) => h('a', { href: linkTo('tickets', id), class: 'mono' }, id),
    },
    { name: 'Status', cell: (ticket) => ticketBadge(ticket) },
    { name: 'Account', cell: ({ account }) => recordLink(session, 'account', account) },
    { name: 'Message', cell: ({ message }) => excerpt(message) },
    { name: 'Call', cell: ({ request_id }) => callLink(request_id) },
    { name: 'Result', cell: ({ call }) => (call ? callStatus(call) : 'no longer in the log') },
  ]
}

function excerpt(text: string): string {
  return text.length > EXCERPT ? `${text.slice(0, EXCERPT)}…` : text
}
