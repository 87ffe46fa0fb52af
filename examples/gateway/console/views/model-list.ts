import type { ModelAnswer as Model } from 'express-model-gateway/models'
import type { Page } from '../api.ts'
import { count } from '../format.ts'
import { filterForm, MODEL } from '../parts/filters.ts'
import { recordLink } from '../parts/links.ts'
import { rowListing } from '../parts/listing.ts'
import { loaded } from '../parts/loaded.ts'
import type { Session } from '../session.ts'
import type { ViewContent, ViewContext } from '../view.ts'

/** Lists the models that the key may use; for operators, all models. */
export function modelList(context: ViewContext): ViewContent {
  const { session, api, signal, query } = context
  const wanted = query.get('model') ?? ''
  const models = loaded('models', async () => {
    const { data } = await api.get<Page<Model>>(modelsPath(session), {}, signal)
    const rows = data.filter(({ id }) => id.includes(wanted))
    return rowListing(rows, wanted !== '', {
      what: 'models',
      empty:
        session.kind === 'admin' ? 'The config has no models.' : 'There are no models that this key may use.',
      columns: [
        { name: 'Model', heads: true, cell: ({ id }) => recordLink(session, 'model', id) },
        { name: 'Kind', cell: ({ kind }) => kind },
        { name: 'Context window', figures: true, cell: ({ context_window }) => count(context_window) },
        {
          name: 'Max output tokens',
          figures: true,
          cell: ({ max_output_tokens }) => count(max_output_tokens),
        },
        { name: 'Features', cell: ({ features }) => features?.join(', ') ?? 'not restricted' },
      ],
    })
  })
  return { title: 'Models', content: [filterForm(context, 'models', [MODEL]), models] }
}

export function modelsPath({ kind }: Session): string {
  return kind === 'admin' ? 'admin/models' : 'v1/models'
}
