import { h } from '../element.ts'
import { linkTo } from '../router.ts'
import type { Ticket } from '../tickets.ts'
import type { ViewContext } from '../view.ts'
import { form, textField } from './form.ts'
import { notice } from './notice.ts'

/** Shows a form to create a ticket about a call. Operators see the call, so that the message need not repeat it. */
export function fileTicket({ api }: ViewContext, requestId: string): HTMLElement {
  return form({
    label: 'File a ticket',
    submit: 'File a ticket',
    fields: textField({
      name: 'message',
      label: 'What went wrong?',
      hint: 'The operator who answers sees this call, but not the body of the request.',
    }),
    async act({ message = '' }) {
      if (message === '') return notice('bad', 'Say in a few words what went wrong.')
      const ticket = await api.send<Ticket>('POST', 'v1/tickets', { request_id: requestId, message })
      const link = h('a', { href: linkTo('tickets', ticket.id) }, ticket.id)
      return notice(
        'good',
        h('p', {}, 'Filed as ', link, '. Note the number: it is how you find the answer.'),
      )
    },
  })
}
