import type { NextFunction, Request, RequestHandler, Response } from 'express'
import { type CallRequest, callOf, type KeptAnswer, type OpenCall } from '../../core/call/index.ts'
import { checkOptions, required } from '../../core/options/index.ts'
import {
  type CreatedResource,
  someUpstreamResources,
  type UpstreamResources,
} from '../../core/upstream-resources/index.ts'

/** Options of {@link references}. */
export interface ReferencesOptions {
  /** The record of objects stored at upstreams: their account and their line. */
  resources: UpstreamResources
}

/**
 * Pins a request that names something an upstream keeps (a response, a file, a conversation …) to the line that has it,
 * and to no other. Records what an answer leaves at its line before the answer's ids are sent. Refuses with `not_found`
 * if the account has no such resource, with `invalid_request` if two lines keep what the request names, and with
 * `internal_error` while the store is away.
 *
 * Mount it behind `readRequest` and `idempotency`, and before `rateLimit` and `billingGuard`, because the conversation so
 * far counts as input of the request.
 *
 * @throws TypeError at construction without an `UpstreamResources`.
 * @example
 * const resources = new UpstreamResources()
 * app.post('/v1/responses', readRequest({ catalog }), references({ resources }), rateLimit(), route({ catalog }))
 */
export function references(options: ReferencesOptions): RequestHandler {
  checkOptions('references', options, { resources: required(someUpstreamResources) })
  const { resources } = options

  return function references(req: Request, _res: Response, next: NextFunction): void {
    const call = callOf(req)
    const { request } = call
    if (!request) {
      next(new TypeError('references: there is no call.request; mount readRequest before references'))
      return
    }
    const keeps = request.operation.keeps?.(request.body.json) === true
    if (!keeps && request.references.length === 0) {
      next()
      return
    }
    if (keeps) call.keepAnswer = recorder(call, request)
    // Refuse now, not after a line has made something that cannot be recorded.
    const checking = request.references.length > 0 ? pin(call, request) : resources.ready(call)
    if (!checking) next()
    else
      checking.then(
        () => next(),
        (error: unknown) => next(call.stamp(error)),
      )
  }

  async function pin(call: OpenCall, request: CallRequest): Promise<void> {
    const pinned = await resources.pin(call, request.references)
    let tokens = 0
    for (const resource of pinned) tokens += resource.tokens
    if (tokens === 0) return
    const { estimatedInputTokens, windowTokens, body } = request
    call.request = {
      ...request,
      estimatedInputTokens: estimatedInputTokens + tokens,
      windowTokens: body.json.truncation === 'auto' ? windowTokens : windowTokens + tokens,
    }
  }

  function recorder(call: OpenCall, { references: named }: CallRequest) {
    return ({ line, made, tokens }: KeptAnswer): Promise<void> => {
      const created: CreatedResource[] = made.map((resource) =>
        resource.kind === 'response' || resource.kind === 'message' ? { ...resource, tokens } : resource,
      )
      // A conversation grows by each response.
      for (const { kind, id } of named) if (kind === 'conversation') created.push({ kind, id, tokens })
      return resources.remember(call, line, created)
    }
  }
}
