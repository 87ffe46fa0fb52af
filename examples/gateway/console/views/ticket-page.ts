import { type Child, fill, h } from '../element.ts'
import { moment } from '../format.ts'
import { announce } from '../parts/announcer.ts'
import { callLink } from '../parts/call-columns.ts'
import { facts, section } from '../parts/facts.ts'
import { choice, form, textField } from '../parts/form.ts'
import { loaded } from '../parts/loaded.ts'
import { emptyState, notice } from '../parts/notice.ts'
import { ticketBadge } from '../parts/ticket-badge.ts'
import type { Ticket } from '../tickets.ts'
import type { Shown, Visit } from '../visit.ts'
import { callSections } from './call-page.ts'

/** A ticket; for operators with the call beside it, and a place to answer. */
export function ticketPage(visit: Visit): Shown {
  const id = visit.params.id ?? ''
  const path = `${visit.session.kind === 'admin' ? 'admin' : 'v1'}/tickets/${encodeURIComponent(id)}`
  const content = loaded('the ticket', async () => {
    const place = h('div', { class: 'stack' })
    const show = (ticket: Ticket): void => fill(place, ...ticketParts(visit, path, ticket, show))
    show(await visit.api.get<Ticket>(path, {}, visit.signal))
    return place
  })
  return { title: 'Ticket', content: [h('p', { class: 'mono subject' }, id), content] }
}

function ticketParts(visit: Visit, path: string, ticket: Ticket, show: (ticket: Ticket) => void): Child[] {
  const { message, reply, call } = ticket
  return [
    facts([
      ['Status', ticketBadge(ticket)],
      ['Filed', moment(ticket.created_at)],
      ['Last changed', moment(ticket.updated_at)],
      ['Account', ticket.account],
      ['Key', ticket.key],
      ['Call', callLink(ticket.request_id)],
    ]),
    section('Message', h('p', { class: 'said' }, message)),
    section('Reply', reply === null ? emptyState('Not answered yet.') : h('p', { class: 'said' }, reply)),
    visit.session.kind === 'admin' && section('Answer it', answerForm(visit, path, ticket, show)),
    call && h('section', { class: 'beside' }, h('h2', {}, 'The call'), callSections(call)),
    call === null && emptyState('The log no longer has the call.'),
  ]
}

const STATUSES = [
  ['answered', 'answered'],
  ['closed', 'closed'],
  ['open', 'open'],
] as const

function answerForm(
  { api }: Visit,
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
      choice({ name: 'status', label: 'Status then' }, STATUSES, chosen),
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
