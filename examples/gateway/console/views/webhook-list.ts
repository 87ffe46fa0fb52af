import type { DeliveryAnswer as Delivery, WebhookAnswer } from 'express-model-gateway/admin'
import { h } from '../element.ts'
import { count, listedMoment, moment } from '../format.ts'
import { collection } from '../parts/collection.ts'
import { checks, choice, field, namesIn } from '../parts/form.ts'
import { subjectLink } from '../parts/links.ts'
import { listing } from '../parts/listing.ts'
import { rotation } from '../parts/rotation.ts'
import { deletion } from '../parts/row-actions.ts'
import { newSecret } from '../parts/secret.ts'
import { badge } from '../parts/status.ts'
import type { Column } from '../parts/table.ts'
import { linkTo } from '../router.ts'
import { may } from '../session.ts'
import type { ViewContent, ViewContext } from '../view.ts'

type Webhook = WebhookAnswer & {
  /** In the answer to a new one only. */
  readonly secret?: string
}

const EVENTS = [
  'budget.threshold',
  'budget.exhausted',
  'balance.low',
  'key.expiring',
  'line.down',
  'line.up',
  'ledger.away',
  'ticket.opened',
]

const WEBHOOKS = 'admin/webhooks'

/** Lists the webhooks, with their states. */
export function webhookList(context: ViewContext): ViewContent {
  const nameOf = ({ url }: Webhook): string => url
  const { actions, content } = collection<Webhook>(context, {
    what: 'webhooks',
    path: WEBHOOKS,
    columns: COLUMNS,
    empty: 'No webhooks yet.',
    one: 'webhook',
    editable: may(context.session, 'admin'),
    nameOf,
    creation: {
      says: 'Events from now on are sent there, signed with a secret that is shown once.',
      fields: () => [
        field({
          name: 'url',
          label: 'URL',
          hint: 'An https address on the public internet.',
          attributes: { type: 'url', required: true, spellcheck: 'false' },
        }),
        choice(
          { name: 'format', label: 'Format' },
          [
            ['standard', 'Standard Webhooks'],
            ['slack', 'Slack: one sentence'],
          ],
          'standard',
        ),
        field({ name: 'description', label: 'Description' }),
        checks('events', 'Events; none chosen: all', EVENTS, []),
      ],
      bodyOf: ({ url, format, description, events }) => ({
        url,
        format,
        description: description || null,
        events: namesIn(events),
      }),
      // Slack verifies no signature.
      made: ({ secret = '', url, format }) => (format === 'slack' ? undefined : newSecret(secret, url)),
    },
    actions: [
      rotation<Webhook>(context, {
        path: WEBHOOKS,
        secret: 'secret',
        overlap: '86400',
        says: 'The new secret is shown once. Both sign each request for the time that you choose, so that the receiver can change over.',
        nameOf,
      }),
      deletion(
        context,
        WEBHOOKS,
        'Its deliveries are deleted with it. What is not delivered yet is never sent.',
        nameOf,
      ),
    ],
  })
  return { title: 'Webhooks', actions, content }
}

const COLUMNS: readonly Column<Webhook>[] = [
  { name: 'Webhook', heads: true, cell: ({ id, url }) => h('a', { href: linkTo('webhooks', id) }, url) },
  { name: 'Description', cell: ({ description }) => description },
  { name: 'Format', cell: ({ format }) => format },
  { name: 'Events', cell: ({ events }) => events?.join(', ') ?? 'all' },
  {
    name: 'State',
    cell: ({ disabled_at: at }) =>
      at === null ? badge('good', 'on') : badge('bad', 'off: the receiver answered 410'),
  },
  { name: 'Dropped', figures: true, cell: ({ dropped }) => count(dropped) },
  { name: 'Created', cell: ({ created_at }) => moment(created_at) },
]

/** Lists the deliveries to a webhook, newest first. */
export function deliveryList(context: ViewContext): ViewContent {
  const id = context.params.id ?? ''
  const list = listing(context, {
    what: 'deliveries',
    path: `${WEBHOOKS}/${encodeURIComponent(id)}/deliveries`,
    columns: deliveryColumns(context),
    empty: 'Nothing was sent to it yet.',
  })
  return { title: 'Deliveries', content: [h('p', { class: 'mono subject' }, id), list] }
}

const TONES = { pending: 'warn', delivered: 'good', given_up: 'bad' } as const

function deliveryColumns({ session }: ViewContext): readonly Column<Delivery>[] {
  return [
    { name: 'Time', cell: ({ created_at }) => listedMoment(created_at) },
    { name: 'Event', heads: true, cell: ({ event }) => h('span', { class: 'mono' }, event) },
    { name: 'Type', names: true, cell: ({ type }) => type },
    { name: 'Subject', cell: ({ subject }) => subjectLink(session, subject) },
    { name: 'State', cell: ({ state }) => badge(TONES[state], state.replace('_', ' ')) },
    { name: 'Attempts', figures: true, cell: ({ attempts }) => count(attempts) },
    { name: 'Answer', names: true, cell: ({ response_status: status, error }) => error ?? status },
    { name: 'Delivered', cell: ({ delivered_at: at }) => at && listedMoment(at) },
    { name: 'Next attempt', cell: ({ next_attempt_at: at }) => at && listedMoment(at) },
  ]
}
