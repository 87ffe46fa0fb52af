import { GatewayError } from '../errors/index.ts'
import { threadDetails } from '../errors/thread-details.ts'
import type { Reference } from '../operations/index.ts'

/** A kind as a sentence says it. */
export function words(kind: string): string {
  return kind.replaceAll('_', ' ')
}

/** The refusal of a request that names something the account does not have. */
export function notFound({ kind, place }: Pick<Reference, 'kind' | 'place'>): GatewayError {
  const named = place()
  if (kind === 'item') return itemNotFound(named)
  const at = named === '' ? '' : ` (${named})`
  const instead = kind === 'response' ? ' Send the conversation as input instead.' : ''
  return new GatewayError('not_found', {
    ...(kind === 'message' && { details: threadDetails('thread_not_found') }),
    message: `There is no stored ${words(kind)} with this id${at}, or it has expired.${instead}`,
  })
}

/** An item that is only named is an input that cannot be read, for clients that name items by themselves. */
function itemNotFound(param: string): GatewayError {
  return new GatewayError('invalid_request', {
    param,
    message: `There is no stored item with this id (${param}), or it has expired. Send whole items: set "store" to false.`,
  })
}

/** The refusal of a request whose things no single line has. */
export function elsewhere({ place }: Reference): GatewayError {
  return new GatewayError('invalid_request', {
    param: place(),
    message:
      'The objects that the request names are stored in different places. Name only objects of one place.',
  })
}
