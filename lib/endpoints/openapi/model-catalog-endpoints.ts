import * as schemas from './answer-schemas.ts'
import type { Endpoint } from './endpoint.ts'

/** Returns the endpoints of the model catalogue below a path. */
export function modelCatalogEndpoints(
  path: '/v1/models' | '/admin/models',
  ids: readonly [list: string, model: string, routing: string],
  common: Pick<Endpoint, 'tag' | 'auth'>,
): readonly Endpoint[] {
  const [list, model, routing] = ids
  const get = { ...common, method: 'get' } as const
  return [
    {
      ...get,
      id: list,
      path,
      summary: path === '/v1/models' ? 'The models that this key may use' : 'All models',
      answers: [{ status: 200, description: 'ModelList', schema: ['ModelList', schemas.models] }],
    },
    {
      ...get,
      id: model,
      path: `${path}/{id}`,
      summary: 'One model',
      answers: [{ status: 200, description: 'Model', schema: ['Model', schemas.model] }],
    },
    {
      ...get,
      id: routing,
      path: `${path}/{id}/routing`,
      summary: 'The lines of a model',
      answers: [{ status: 200, description: 'Routing', schema: ['Routing', schemas.routing] }],
    },
  ]
}
