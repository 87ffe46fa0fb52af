import { usagePanel } from '../parts/usage-panel.ts'
import type { ViewContent, ViewContext } from '../view.ts'

/** The start page: the usage of all accounts for operators, of their own for holders of keys. */
export function overview(context: ViewContext): ViewContent {
  const groups =
    context.session.kind === 'admin' ? ['model', 'line', 'account', 'key'] : ['model', 'key', 'user']
  return { title: 'Overview', content: usagePanel(context, {}, groups) }
}
