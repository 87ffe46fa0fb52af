import type { Page } from '../api.ts'
import { h } from '../element.ts'
import { count } from '../format.ts'
import { loaded } from '../parts/loaded.ts'
import { emptyState } from '../parts/notice.ts'
import { table } from '../parts/table.ts'
import { linkTo } from '../router.ts'
import type { Session } from '../session.ts'
import type { ViewContent, ViewContext } from '../view.ts'

interface Model {
  readonly id: string
  readonly kind: string
  readonly context_window: number | null
  readonly max_output_tokens: number | null
  readonly features: readonly string[] | null
}

/** Lists the models that the key may use; for operators, all models. */
export function modelList({ session, api, signal }: ViewContext): ViewContent {
  const models = loaded('models', async () => {
    const { data } = await api.get<Page<Model>>(modelsPath(session), {}, signal)
    if (data.length === 0) return emptyState('There are no models that this key may use.')
    return table(
      'Models',
      [
        { name: 'Model', heads: true, cell: ({ id }) => h('a', { href: linkTo('models', id) }, id) },
        { name: 'Kind', cell: ({ kind }) => kind },
        { name: 'Context window', figures: true, cell: ({ context_window }) => count(context_window) },
        { name: 'Most output', figures: true, cell: ({ max_output_tokens }) => count(max_output_tokens) },
        { name: 'Features', cell: ({ features }) => features?.join(', ') ?? 'not restricted' },
      ],
      data,
    )
  })
  return { title: 'Models', content: models }
}

export function modelsPath({ kind }: Session): string {
  return kind === 'admin' ? 'admin/models' : 'v1/models'
}
