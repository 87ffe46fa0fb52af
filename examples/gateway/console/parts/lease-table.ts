import type { LeaseAnswer as Lease } from 'express-model-gateway/admin'
import { h } from '../element.ts'
import { moment, usd } from '../format.ts'
import type { ViewContext } from '../view.ts'
import { subjectLink } from './links.ts'
import { listing } from './listing.ts'

/** Shows the open leases of all processes, for one account or for all. */
export function leaseTable(context: ViewContext, account?: string): HTMLElement {
  return listing<Lease>(context, {
    what: 'leases',
    path: 'admin/leases',
    of: { account },
    empty: 'No open leases.',
    columns: [
      { name: 'Scope', heads: true, cell: ({ wallet }) => subjectLink(context.session, wallet) },
      { name: 'Held', figures: true, cell: ({ held }) => usd(held) },
      { name: 'Process', cell: ({ owner }) => h('span', { class: 'mono small' }, owner) },
      { name: 'Renewed', cell: ({ renewed_at }) => moment(renewed_at) },
    ],
  })
}
