import { type Call, linesOf } from '../calls.ts'
import { h } from '../element.ts'
import { count, duration, listedMoment, usd } from '../format.ts'
import type { Session } from '../session.ts'
import { callLink, recordLink } from './links.ts'
import { callStatus } from './status.ts'
import type { Column } from './table.ts'

export function callColumns(session: Session): readonly Column<Call>[] {
  const key: Column<Call> = { name: 'Key', cell: ({ key: id }) => recordLink(session, 'key', id) }
  const owner: Column<Call> = {
    name: 'Account',
    names: true,
    cell: ({ account, key: id }) => [
      h('div', {}, recordLink(session, 'account', account)),
      id !== null && h('small', {}, recordLink(session, 'key', id)),
    ],
  }
  return [
    { name: 'Time', cell: ({ created_at }) => listedMoment(created_at) },
    { name: 'Request id', heads: true, cell: ({ id }) => callLink(id) },
    session.kind === 'admin' ? owner : key,
    { name: 'Model or path', names: true, cell: ({ model, method, path }) => model ?? `${method} ${path}` },
    {
      name: 'Status',
      cell: (call) => [
        callStatus(call),
        call.repeats !== undefined &&
          h('small', { class: 'repeats' }, `and ${count(call.repeats)} more like it`),
      ],
    },
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
