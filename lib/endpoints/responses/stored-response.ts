import type { NextFunction, Request, RequestHandler, Response } from 'express'
import { type CallRequest, callOf, type LineResource, type OpenCall } from '../../core/call/index.ts'
import { FREE, type Model } from '../../core/catalog/index.ts'
import { GatewayError } from '../../core/errors/index.ts'
import { storedResponses } from '../../core/operations/index.ts'
import {
  type CatalogSource,
  catalogFrom,
  checkOptions,
  neededCatalog,
  required,
} from '../../core/options/index.ts'
import {
  someUpstreamResources,
  type UpstreamResource,
  type UpstreamResources,
} from '../../core/upstream-resources/index.ts'

/** Options of {@link storedResponse}. */
export interface StoredResponseOptions {
  /** The record of objects stored at upstreams: the same as that of `references`. */
  resources: UpstreamResources
  /**
   * The models and lines, or a function that returns them if they can change while the app runs. If the function always
   * returns the same catalogue for the same call, running calls are not affected by a change.
   */
  catalog: CatalogSource
}

/** The path of {@link storedResponse}; mount it for all methods. */
export const STORED_RESPONSE_PATH = '/v1/responses/:id{/:part}'

/**
 * Finds the line that made a response and pins the call to it, for `route`: `GET` and `DELETE` of `/v1/responses/{id}`,
 * and `GET /v1/responses/{id}/input_items`. No model runs and nothing is charged. Refuses with `not_found` if the account
 * has no such response. `POST /v1/responses/{id}/cancel` is a `conflict`, because no response runs in the background.
 *
 * @throws TypeError at construction if an option is invalid.
 * @example
 * app.all(STORED_RESPONSE_PATH, rateLimit(), storedResponse({ resources, catalog }), route({ catalog }))
 */
export function storedResponse(options: StoredResponseOptions): RequestHandler {
  checkOptions('storedResponse', options, {
    resources: required(someUpstreamResources),
    catalog: neededCatalog,
  })
  const { resources, catalog } = options
  const catalogOf = catalogFrom(catalog)

  return async function storedResponse(req: Request, _res: Response, next: NextFunction): Promise<void> {
    const call = callOf(req)
    try {
      const id = String(req.params.id ?? '')
      const action = actionOf(req, id)
      const [resource] = await resources.find(call, [{ kind: 'response', id }])
      pin(call, action, resource)
    } catch (error) {
      next(call.stamp(error))
      return
    }
    next()
  }

  function pin(
    call: OpenCall,
    action: LineResource | 'cancel',
    resource: UpstreamResource | undefined,
  ): void {
    if (!resource)
      throw new GatewayError('not_found', {
        message: 'There is no stored response with this id, or it has expired. Check the id.',
      })
    if (call.left) throw new GatewayError('client_closed_request')
    const model = resource.model ?? ''
    call.model = model
    if (call.principal && !call.principal.mayUseModel(model)) throw new GatewayError('model_not_allowed')
    if (action === 'cancel') {
      throw new GatewayError('conflict', {
        message: 'The response does not run in the background; there is nothing to cancel.',
      })
    }
    call.request = resourceRequest(action, catalogOf(call).modelOf(model) ?? removedModel(model))
    call.pin = { line: resource.line, holds: 'the response' }
    if (action.method === 'DELETE') call.onSettle(({ outcome }) => forget(call, resource, outcome.finish))
  }

  /** Deletes a record. If that fails, the record does no harm: the line no longer has the response. */
  function forget(call: OpenCall, resource: UpstreamResource, finish: string): Promise<void> | undefined {
    return finish === 'completed' ? resources.forget(call, resource).catch(() => {}) : undefined
  }
}

/** The query parameters that are passed on to the line. */
const RESPONSE_PARAMETERS: ReadonlySet<string> = new Set(['include', 'include[]', 'include_obfuscation'])
const INPUT_PARAMETERS: ReadonlySet<string> = new Set([
  'include',
  'include[]',
  'limit',
  'order',
  'after',
  'before',
])

/**
 * Returns what the request does with the response.
 *
 * @throws {GatewayError} `not_found` for an unknown method or path.
 */
function actionOf(req: Request, id: string): LineResource | 'cancel' {
  const { method, params } = req
  const path = `/responses/${encodeURIComponent(id)}`
  const query = new URL(req.originalUrl, 'http://localhost').searchParams
  if (method === 'POST' && params.part === 'cancel') return 'cancel'
  if (method === 'GET' && params.part === 'input_items') {
    return { method, path: `${path}/input_items${queryText(query, INPUT_PARAMETERS)}` }
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
  return { method, path: path + queryText(query, RESPONSE_PARAMETERS) }
}

function queryText(query: URLSearchParams, known: ReadonlySet<string>): string {
  const passedOn = new URLSearchParams([...query].filter(([name]) => known.has(name)))
  return passedOn.size > 0 ? `?${passedOn}` : ''
}

function resourceRequest(resource: LineResource, model: Model): CallRequest {
  return {
    operation: storedResponses,
    body: { raw: Buffer.alloc(0), json: {} },
    model,
    fallbacks: [],
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
    webSearches: 0,
    constraint: undefined,
    provider: undefined,
    references: [],
    resource,
  }
}

/** Returns a model that is no longer in the catalogue: callers can still use its responses. */
function removedModel(id: string): Model {
  return {
    id,
    kind: 'chat',
    contextWindow: undefined,
    maxOutputTokens: undefined,
    features: undefined,
    price: FREE,
  }
}
