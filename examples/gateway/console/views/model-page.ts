import { h } from '../element.ts'
import type { Line } from '../lines.ts'
import { section } from '../parts/facts.ts'
import { lineColumns } from '../parts/line-columns.ts'
import { loaded } from '../parts/loaded.ts'
import { emptyState } from '../parts/notice.ts'
import { table } from '../parts/table.ts'
import { usagePanel } from '../parts/usage-panel.ts'
import { linkWith } from '../router.ts'
import type { ViewContent, ViewContext } from '../view.ts'
import { modelsPath } from './model-list.ts'

/** Shows the lines of a model with their status. */
export function modelPage(context: ViewContext): ViewContent {
  const { session, api, params, signal } = context
  const id = params.id ?? ''
  const lines = loaded('lines', async () => {
    const path = `${modelsPath(session)}/${encodeURIComponent(id)}/routing`
    const { candidates } = await api.get<{ candidates: readonly Line[] }>(path, {}, signal)
    if (candidates.length === 0) return emptyState('The model has no line.')
    return table('Lines of the model', lineColumns(session), candidates)
  })
  return {
    title: id,
    actions: h('a', { class: 'button', href: linkWith('calls', { model: id }) }, 'Calls of this model'),
    content: [
      section('Lines', lines),
      section('Usage', usagePanel(context, { model: id }, [session.kind === 'admin' ? 'account' : 'key'])),
    ],
  }
}
