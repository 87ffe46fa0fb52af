import type { Model } from '../../core/catalog/index.ts'
import { GatewayError } from '../../core/errors/index.ts'
import { ENDPOINT_BY_KIND } from '../../core/operations/index.ts'

/** The refusal of a model of another kind. It comes before others: the body may be right for that model's endpoint. */
export function wrongKind({ kind }: Model, param = 'model'): GatewayError {
  return new GatewayError('invalid_request', {
    param,
    message: `The model is of the kind "${kind}" and is not served here: use ${ENDPOINT_BY_KIND[kind]}.`,
  })
}
