import type { NextFunction, Request, RequestHandler, Response } from 'express'
import { type Call, type CallRequest, callOf, type LineResource } from '../../core/call/index.ts'
import { type Catalog, FREE, type Model } from '../../core/catalog/index.ts'
import { GatewayError } from '../../core/errors/index.ts'
import { storedResponses } from '../../core/operations/index.ts'
import { accountOf, refuseUnchecked, requireKeeper } from './refusals.ts'
import type { ResponseKeeper } from './response-keeper.ts'
import type { ResponseRecord } from './response-store.ts'

/** Options of {@link storedResponse}. */
export interface StoredResponseOptions {
  /** Knows which line made which response. */
  keeper: ResponseKeeper
  /**
   * The models and lines; a function where they can change while the app runs. One that answers the same for the same
   * call, whoever asks, lets calls that have begun finish on what they began with.
   */
  catalog: Catalog | ((call: Call) => Catalog)
}

/** Where to mount {@link storedResponse}, for all methods. */
export const STORED_RESPONSE_PATH = '/v1/responses/:id{/:part}'

/**
 * Finds the line that made a response and pins the call to it, for `route` to ask: `GET` and `DELETE` of
 * `/v1/responses/{id}`, and `GET /v1/responses/{id}/input_items`. Runs no model and is not charged. Refuses with
 * `not_found` where the account has no such response. `POST /v1/responses/{id}/cancel` is a `conflict`: no response here
 * runs in the background.
 *
 * @throws TypeError at construction when an option is unusable.
 * @example
 * app.all(STORED_RESPONSE_PATH, rateLimit(), storedResponse({ keeper, catalog }), route({ catalog }))
 */
export function storedResponse({ keeper, catalog }: StoredResponseOptions): RequestHandler {
  requireKeeper('storedResponse', keeper)
  if (!catalog) throw new TypeError('storedResponse: "catalog" is needed; loadConfig(json).catalog is one')
  const catalogOf = typeof catalog === 'function' ? catalog : () => catalog

  return function storedResponse(req: Request, _res: Response, next: NextFunction): void {
    const call = callOf(req)
    try {
      const id = String(req.params.id ?? '')
      const wish = wishOf(req, id)
      void keeper
        .find(accountOf(call), id)
        .then((record) => grant(call, wish, record))
        .catch((error: unknown) =>
          error instanceof GatewayError ? call.stamp(error) : refuseUnchecked(call, error),
        )
        .then(next)
    } catch (error) {
      next(error instanceof GatewayError ? call.stamp(error) : error)
    }
  }

  function grant(call: Call, wish: LineResource | 'cancel', record: ResponseRecord | undefined): void {
    if (!record) throw new GatewayError('not_found', { message: 'There is no stored response with this id.' })
    if (call.left) throw new GatewayError('client_closed_request')
    call.model = record.model
    if (call.principal && !call.principal.mayUseModel(record.model))
      throw new GatewayError('model_not_allowed')
    if (wish === 'cancel') {
      throw new GatewayError('conflict', {
        message: 'The response does not run in the background; there is nothing to cancel.',
      })
    }
    call.request = requestFor(wish, catalogOf(call).models.get(record.model) ?? formerModel(record.model))
    call.pin = { line: record.line, holds: 'the response' }
    if (wish.method === 'DELETE') call.onSettle(({ outcome }) => forget(record, outcome.finish))
  }

  /** A record that stays says no more than that the line knows: asked for the response, it has none. */
  function forget({ account, id }: ResponseRecord, finish: string): Promise<void> | undefined {
    return finish === 'completed' ? keeper.forget(account, id).catch(() => {}) : undefined
  }
}

/** Query members that go on to the line, of a response and of its input. */
const OF_RESPONSE: ReadonlySet<string> = new Set(['include', 'include[]', 'include_obfuscation'])
const OF_INPUT: ReadonlySet<string> = new Set(['include', 'include[]', 'limit', 'order', 'after', 'before'])

/**
 * What is asked for.
 *
 * @throws {GatewayError} `not_found` where there is no such thing to ask for.
 */
function wishOf(req: Request, id: string): LineResource | 'cancel' {
  const { method, params } = req
  const path = `/responses/${encodeURIComponent(id)}`
  const query = new URL(req.originalUrl, 'http://localhost').searchParams
  if (method === 'POST' && params.part === 'cancel') return 'cancel'
  if (method === 'GET' && params.part === 'input_items') {
    return { method, path: `${path}/input_items${queryText(query, OF_INPUT)}` }
  }
  if (params.part !== undefined) throw new GatewayError('not_found')
  if (method === 'DELETE') return { method, path }
  if (method !== 'GET') throw new GatewayError('not_found')
  if (query.get('stream') === 'true' || query.has('starting_after')) {
    throw new GatewayError('unsupported_feature', {
      param: 'stream',
      message: 'A stored response cannot be streamed again. Retrieve it whole, without "stream".',
    })
  }
  return { method, path: path + queryText(query, OF_RESPONSE) }
}

function queryText(query: URLSearchParams, known: ReadonlySet<string>): string {
  const kept = new URLSearchParams([...query].filter(([name]) => known.has(name)))
  return kept.size > 0 ? `?${kept}` : ''
}

function requestFor(resource: LineResource, model: Model): CallRequest {
  return {
    operation: storedResponses,
    body: { raw: Buffer.alloc(0), json: {} },
    model,
    stream: false,
    features: new Set(),
    estimatedInputTokens: 0,
    windowTokens: 0,
    maxOutputTokens: undefined,
    answers: 1,
    units: 0,
    messages: 0,
    tools: 0,
    images: 0,
    constraint: undefined,
    provider: undefined,
    resource,
  }
}

/** A model that the catalogue does not have any more: its responses are still its callers'. */
function formerModel(id: string): Model {
  return {
    id,
    kind: 'chat',
    contextWindow: undefined,
    maxOutputTokens: undefined,
    features: undefined,
    price: FREE,
  }
}
