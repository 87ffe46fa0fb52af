import { type Child, fill, h } from '../element.ts'
import { moment } from '../format.ts'
import { announce } from '../parts/announcer.ts'
import { facts, section } from '../parts/facts.ts'
import { choice, form, textField } from '../parts/form.ts'
import { callLink, recordLink } from '../parts/links.ts'
import { loaded } from '../parts/loaded.ts'
import { emptyState, notice } from '../parts/notice.ts'
import { ticketBadge } from '../parts/ticket-badge.ts'
import { may } from '../session.ts'
import type { Ticket } from '../tickets.ts'
import type { ViewContent, ViewContext } from '../view.ts'
import { callSections } from './call-page.ts'

/** Shows a ticket; for operators with its call and a form to reply. */
export function ticketPage(context: ViewContext): ViewContent {
  const id = context.params.id ?? ''
  const path = `${context.session.kind === 'admin' ? 'admin' : 'v1'}/tickets/${encodeURIComponent(id)}`
  const content = loaded('the ticket', async () => {
    const place = h('div', { class: 'stack' })
    const show = (ticket: Ticket): void => fill(place, ...ticketParts(context, path, ticket, show))
    show(await context.api.get<Ticket>(path, {}, context.signal))
    return place
  })
  return { title: 'Ticket', content: [h('p', { class: 'mono subject' }, id), content] }
}

function ticketParts(
  context: ViewContext,
  path: string,
  ticket: Ticket,
  show: (ticket: Ticket) => void,
): Child[] {
  const { message, reply, call } = ticket
  return [
    facts([
      ['Status', ticketBadge(ticket)],
      ['Filed', moment(ticket.created_at)],
      ['Last changed', moment(ticket.updated_at)],
      ['Account', recordLink(context.session, 'account', ticket.account)],
      ['Key', recordLink(context.session, 'key', ticket.key)],
      ['Call', callLink(ticket.request_id)],
    ]),
    section('Message', h('p', { class: 'said' }, message)),
    section('Reply', reply === null ? emptyState('Not answered yet.') : h('p', { class: 'said' }, reply)),
    may(context.session, 'support') && section('Answer it', answerForm(context, path, ticket, show)),
    call && h('section', { class: 'beside' }, h('h2', {}, 'The call'), callSections(call, context.session)),
    call === null && emptyState('The log no longer has the call.'),
  ]
}

const STATUSES = [
  ['answered', 'answered'],
  ['closed', 'closed'],
  ['open', 'open'],
] as const

function answerForm(
  { api }: ViewContext,
  path: string,
  ticket: Ticket,
  show: (ticket: Ticket) => void,
): HTMLElement {
  const chosen = ticket.status === 'open' ? 'answered' : ticket.status
  return form({
    label: 'Answer the ticket',
    submit: 'Save',
    fields: [
      textField({ name: 'reply', label: 'Reply', hint: 'The holder of the key sees it with the ticket.' }),
      choice({ name: 'status', label: 'New status' }, STATUSES, chosen),
    ],
    async act({ reply = '', status = 'answered' }) {
      if (reply === '' && status === 'answered' && ticket.reply === null)
        return notice('bad', 'Write a reply, or choose another status.')
      const said = { status, ...(reply !== '' && { reply }) }
      show(await api.send<Ticket>('PATCH', path, said))
      announce('Saved.')
      return null
    },
  })
}
