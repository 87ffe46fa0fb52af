import * as schemas from './answer-schemas.ts'
import { answersWith, type Endpoint, endpoint } from './endpoint.ts'

/** Returns the endpoints of the model catalogue below a path. */
export function modelCatalogEndpoints(
  path: '/v1/models' | '/admin/models',
  ids: readonly [list: string, model: string, routing: string],
  common: Pick<Endpoint, 'tag' | 'auth'>,
): readonly Endpoint[] {
  const [list, model, routing] = ids
  const isPublic = path === '/v1/models'
  const summary = isPublic ? 'The models that this key may use' : 'All models'
  const candidates = isPublic
    ? answersWith('Routing', schemas.routing)
    : answersWith('RoutingWithFigures', schemas.routingWithFigures)
  return [
    endpoint('get', path, list, { ...common, summary, answers: answersWith('ModelList', schemas.models) }),
    endpoint('get', `${path}/{id}`, model, {
      ...common,
      summary: 'One model',
      answers: answersWith('Model', schemas.model),
    }),
    endpoint('get', `${path}/{id}/routing`, routing, {
      ...common,
      summary: 'The lines of a model',
      answers: candidates,
    }),
  ]
}
