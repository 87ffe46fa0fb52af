import * as schemas from './answer-schemas.ts'
import { answersWith, type Endpoint } from './endpoint.ts'

/** Returns the endpoints of the model catalogue below a path. */
export function modelCatalogEndpoints(
  path: '/v1/models' | '/admin/models',
  ids: readonly [list: string, model: string, routing: string],
  common: Pick<Endpoint, 'tag' | 'auth'>,
): readonly Endpoint[] {
  const [list, model, routing] = ids
  const get = { ...common, method: 'get' } as const
  const isPublic = path === '/v1/models'
  const candidates = isPublic
    ? answersWith('Routing', schemas.routing)
    : answersWith('RoutingWithFigures', schemas.routingWithFigures)
  return [
    {
      ...get,
      id: list,
      path,
      summary: isPublic ? 'The models that this key may use' : 'All models',
      answers: answersWith('ModelList', schemas.models),
    },
    {
      ...get,
      id: model,
      path: `${path}/{id}`,
      summary: 'One model',
      answers: answersWith('Model', schemas.model),
    },
    {
      ...get,
      id: routing,
      path: `${path}/{id}/routing`,
      summary: 'The lines of a model',
      answers: candidates,
    },
  ]
}
