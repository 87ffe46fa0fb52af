import { type Call, linesOf } from '../calls.ts'
import { h } from '../element.ts'
import { count, duration, listedMoment, usd } from '../format.ts'
import { linkTo } from '../router.ts'
import type { Session } from '../session.ts'
import { callStatus } from './status.ts'
import type { Column } from './table.ts'

/** The columns of a list of calls. */
export function callColumns({ kind }: Session): readonly Column<Call>[] {
  const account: Column<Call> = { name: 'Account', cell: ({ account }) => account && accountLink(account) }
  return [
    { name: 'Time', cell: ({ created_at }) => listedMoment(created_at) },
    { name: 'Request id', heads: true, cell: ({ id }) => callLink(id) },
    ...(kind === 'admin' ? [account] : []),
    { name: 'Asked for', names: true, cell: ({ model, method, path }) => model ?? `${method} ${path}` },
    { name: 'Status', cell: (call) => callStatus(call) },
    { name: 'Lines', names: true, cell: (call) => linesOf(call) },
    { name: 'Duration', figures: true, cell: ({ duration_ms }) => duration(duration_ms) },
    {
      name: 'Tokens',
      figures: true,
      cell: ({ usage }) => usage && `${count(usage.input_tokens)} → ${count(usage.output_tokens)}`,
    },
    { name: 'Charged', figures: true, cell: ({ billing }) => usd(billing?.charged) },
  ]
}

export function callLink(id: string): HTMLElement {
  return h('a', { href: linkTo('calls', id), class: 'mono' }, id)
}

function accountLink(id: string): HTMLElement {
  return h('a', { href: linkTo('accounts', id) }, id)
}
