import * as shown from './answer-schemas.ts'
import type { Endpoint } from './endpoint.ts'

/** The models and their lines, as they are shown below a path. */
export function modelLookUps(
  path: '/v1/models' | '/admin/models',
  ids: readonly [list: string, model: string, routing: string],
  of: Pick<Endpoint, 'tag' | 'opens'>,
): readonly Endpoint[] {
  const [list, model, routing] = ids
  const get = { ...of, method: 'get' } as const
  return [
    {
      ...get,
      id: list,
      path,
      summary: path === '/v1/models' ? 'What this key may use' : 'All models',
      answers: [{ status: 200, description: 'ModelList', schema: ['ModelList', shown.models] }],
    },
    {
      ...get,
      id: model,
      path: `${path}/{id}`,
      summary: 'One model',
      answers: [{ status: 200, description: 'Model', schema: ['Model', shown.model] }],
    },
    {
      ...get,
      id: routing,
      path: `${path}/{id}/routing`,
      summary: 'The lines of a model',
      answers: [{ status: 200, description: 'Routing', schema: ['Routing', shown.routing] }],
    },
  ]
}
