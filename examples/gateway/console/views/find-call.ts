import { listCalls } from '../calls.ts'
import { h } from '../element.ts'
import { callColumns } from '../parts/call-columns.ts'
import { section } from '../parts/facts.ts'
import { field, form } from '../parts/form.ts'
import { loaded } from '../parts/loaded.ts'
import { emptyState, notice } from '../parts/notice.ts'
import { table } from '../parts/table.ts'
import { linkTo } from '../router.ts'
import type { ViewContent, ViewContext } from '../view.ts'

const NEWEST = 8

/** The start page: finds a call by its request id. */
export function findCall(context: ViewContext): ViewContent {
  const search = form({
    label: 'Find a call',
    submit: 'Find',
    fields: field({
      name: 'id',
      label: 'Request id',
      hint: 'From the header X-Request-Id of an answer, or from the request_id of an error.',
      attributes: { class: 'mono', placeholder: 'req_…', spellcheck: 'false', autofocus: true, size: 40 },
    }),
    act({ id = '' }) {
      if (id === '') return notice('bad', 'Type in a request id.')
      location.hash = linkTo('calls', id)
      return null
    },
  })
  const newest = loaded('calls', async () => {
    const { data } = await listCalls(context, { limit: NEWEST })
    if (data.length === 0) return emptyState('No calls yet. The first one will stand here.')
    return [
      table('The newest calls', callColumns(context.session), data),
      h('p', {}, h('a', { href: linkTo('calls') }, 'All calls')),
    ]
  })
  return { title: 'Find a call', content: [search, section('The newest calls', newest)] }
}
