import type { NextFunction, Request, RequestHandler, Response } from 'express'
import {
  bodyFor,
  callOf,
  type OpenCall,
  type RequestBody,
  readAttribution,
  readTags,
} from '../../core/call/index.ts'
import type { Catalog, Feature, Model, UnsupportedPolicy } from '../../core/catalog/index.ts'
import { GatewayError, toGatewayError } from '../../core/errors/index.ts'
import { bodyFault } from '../../core/operations/body/body-schema.ts'
import { constraintOf, givenConstraint } from '../../core/operations/body/provider-constraint.ts'
import type { Reference } from '../../core/operations/body/references.ts'
import {
  contextReason,
  OPERATIONS,
  type Operation,
  type RequestFacts,
  referencesIn,
  windowNeeded,
} from '../../core/operations/index.ts'
import { settled } from '../../core/options/index.ts'
import { MAX_BYTES_AT_ONCE } from '../../core/timing/index.ts'
import { factsInTurns, factsOf } from './body-facts.ts'
import { fallbacksOf, takesModels, withFirstModel } from './fallback-models.ts'
import { readBody, turnOf } from './read-body.ts'
import { type ReadRequestOptions, readRequestSettings } from './read-request-options.ts'
import { wrongKind } from './wrong-kind.ts'

const NO_OPERATION =
  'readRequest: the path of this route does not say which operation it is; give "operation", such as chatCompletions'

/** Whether the app wrote this very path: then the caller has made no mistake. */
function isOwnPath({ route }: Request): boolean {
  return typeof route?.path === 'string' && !/[*:{]/.test(route.path)
}

/**
 * Reads and validates the body, and writes `call.request`. Refuses with `invalid_request` (naming the member in
 * `error.param`), `request_too_large`, `model_not_found`, `model_not_allowed`, `unsupported_feature` or
 * `context_too_long`. Unknown members pass through unchanged.
 *
 * @throws TypeError at construction when an option is unusable.
 * @example
 * app.post('/v1/chat/completions', readRequest({ catalog }), route({ catalog }))
 */
export function readRequest(options: ReadRequestOptions): RequestHandler {
  const { catalogOf, operation: given, modelOf, before, estimatorFor, bounds } = readRequestSettings(options)

  return function readRequest(req: Request, _res: Response, next: NextFunction): void {
    const call = callOf(req)
    read(req, call).then(
      () => next(),
      (error: unknown) => next(call.stamp(error)),
    )
  }

  async function read(req: Request, call: OpenCall): Promise<void> {
    const operation = operationOf(req, call)
    if (modelOf) call.model = modelOf(req).slice(0, 200).toWellFormed()
    if (!call.tags) readTags(call, req.headers['x-gateway-tags'])
    if (before.length > 0 && isAskedEarly(req)) await refuseEarly(req, call, operation)
    let read: RequestBody
    try {
      read = await readBody(req, call, bounds, operation.acceptsForms === true)
    } catch (error) {
      throw toGatewayError(error)
    }
    const body = modelOf && call.model !== null ? bodyFor(read, call.model) : withFirstModel(read, operation)
    // A form has no raw bytes, so its size is not known any more.
    const isSmall = body.raw.length > 0 && body.raw.length <= MAX_BYTES_AT_ONCE
    // Other calls go on between the steps of a large body.
    if (isSmall) {
      checkBody(call, operation, body.json)
      acceptFacts(call, operation, body, factsOf(operation, body, estimatorFor), req)
      return
    }
    const nextTurn = (): Promise<void> => turnOf(call)
    await nextTurn()
    checkBody(call, operation, body.json)
    await nextTurn()
    const facts = await factsInTurns(operation, body, estimatorFor, nextTurn)
    acceptFacts(call, operation, body, facts, req)
    await nextTurn()
  }

  function operationOf(req: Request, call: OpenCall): Operation {
    const operation = (typeof given === 'function' ? given(req) : given) ?? operationByPath(call.path)
    if (operation) return operation
    throw given === undefined && isOwnPath(req) ? new TypeError(NO_OPERATION) : call.refuse('not_found')
  }

  /** Refuses the call if a later middleware would refuse it with any body. */
  async function refuseEarly(req: Request, call: OpenCall, operation: Operation): Promise<void> {
    for (const refuser of before) {
      const refusal = await settled('"refuseEarly"', () => refuser.refuseEarly(req, call, operation))
      if (refusal instanceof Error) throw refusal
      if (refusal !== undefined) throw new TypeError('"refuseEarly" must return an error, or undefined')
    }
    if (call.left) throw call.refuse('client_closed_request')
  }

  function checkBody(call: OpenCall, operation: Operation, json: RequestBody['json']): void {
    // Most bodies contain no user id.
    if ((json.user ?? json.safety_identifier ?? json.metadata) !== undefined) readAttribution(call, json)
    const model = typeof json.model === 'string' ? catalogOf(call).modelOf(json.model) : undefined
    if (model && model.kind !== operation.kind) {
      call.model = model.id
      throw wrongKind(model)
    }
    if ((json.models ?? json.fallbacks ?? null) !== null) refuseOtherModels(operation, json)
    const fault = bodyFault(operation.schema, json)
    if (fault) throw new GatewayError('invalid_request', fault)
  }

  function acceptFacts(
    call: OpenCall,
    operation: Operation,
    body: RequestBody,
    facts: RequestFacts,
    { headers }: Request,
  ): void {
    const known = catalogOf(call)
    const { provider } = body.json
    const header = headers['x-gateway-provider']
    const policy = headers['x-gateway-unsupported']
    call.model = facts.model.slice(0, 200).toWellFormed()
    const model = known.modelOf(facts.model)
    if (!model) throw new GatewayError('model_not_found')
    if (call.principal && !call.principal.mayUseModel(model.id)) throw new GatewayError('model_not_allowed')
    const isConstrained = header !== undefined || (provider ?? undefined) !== undefined
    const given = isConstrained ? givenConstraint(provider, header) : undefined
    const constraint = given && constraintOf(given)
    const { principal } = call
    const fallbacks = fallbacksOf({
      catalog: known,
      model,
      json: body.json,
      operation,
      principal,
      constraint,
    })
    call.request = {
      operation,
      body,
      model,
      fallbacks,
      stream: facts.stream,
      features: facts.features,
      estimatedInputTokens: facts.estimatedInputTokens,
      windowTokens: facts.windowTokens ?? facts.estimatedInputTokens,
      maxOutputTokens: facts.maxOutputTokens,
      answers: facts.answers,
      units: facts.units ?? 0,
      messages: facts.messages,
      tools: facts.tools,
      images: facts.images,
      webSearches: facts.webSearches ?? 0,
      constraint,
      provider: given?.provider,
      unsupported: policy === undefined ? undefined : givenPolicy(policy),
      references: referencesIn(body.json).filter((named) => !isLabel(named)),
    }
    if (facts.stream && !operation.streamReader) throw doesNotStream(facts)
    const models = [model, ...fallbacks]
    if (facts.features.size > 0) requireFeatures(models, facts)
    requireWindow(known, models, facts)
  }
}

/** Whether a reference is the `session_id` by which OpenRouter groups calls, which their caller makes up. */
function isLabel({ kind, place }: Reference): boolean {
  return kind === 'session' && place() === 'session_id'
}

/** Returns what the header `X-Gateway-Unsupported` asks for. */
function givenPolicy(header: string | string[]): UnsupportedPolicy {
  const policy = String(header).trim().toLowerCase()
  if (policy === 'drop' || policy === 'refuse') return policy
  throw new GatewayError('invalid_request', {
    param: 'X-Gateway-Unsupported',
    message: 'The header X-Gateway-Unsupported must be "drop" or "refuse".',
  })
}

/** A body of at most this size is read without asking whether the call will be refused. */
const MAX_UNASKED_BYTES = 16 * 1024

/**
 * Whether a body that is large, or may be, is still to be read. One with an Idempotency-Key is read in any case: it may
 * repeat a call that was answered, whatever limits and money are left.
 */
function isAskedEarly({ headers, body }: Request): boolean {
  if (body !== undefined || headers['idempotency-key'] !== undefined) return false
  return !(Number(headers['content-length']) <= MAX_UNASKED_BYTES)
}

/** Finds the operation of a path as Express matches routes: in any case, with or without a trailing slash. */
function operationByPath(path: string): Operation | undefined {
  const plain = (path.endsWith('/') ? path.slice(0, -1) : path).toLowerCase()
  for (const operation of OPERATIONS) if (plain.endsWith(operation.path)) return operation
  return undefined
}

/** Anthropic accepts this in place of models: it then chooses a model itself for a request that the first one declines. */
const OWN_CHOICE = 'default'

/**
 * Refuses a request that names further models for the upstream, as LiteLLM and Anthropic read them. It would run one that the key
 * may not use, at the price of another.
 */
function refuseOtherModels(operation: Operation, { model, models, fallbacks }: RequestBody['json']): void {
  const namesOther =
    !takesModels(operation) &&
    (models ?? null) !== null &&
    (!Array.isArray(models) || models.length === 0 || models.some((one) => one !== model))
  if (!namesOther && (fallbacks ?? null) === null) return
  const param = namesOther ? 'models' : 'fallbacks'
  if (param === 'fallbacks' && fallbacks === OWN_CHOICE) return
  throw new GatewayError('invalid_request', {
    param,
    // Claude Code knows the first sentence, and goes on without the parameter.
    message: `The \`${param}\` parameter is not supported. Leave it out: the gateway tries the other lines of the model.`,
  })
}

/** The refusal of a stream by an endpoint that has none. */
function doesNotStream({ featureParams }: RequestFacts): GatewayError {
  return new GatewayError('unsupported_feature', {
    param: featureParams.get('stream') ?? 'stream',
    message: 'This endpoint does not stream. Leave "stream" out.',
  })
}

/** Refuses a request that asks for what all of its models lack. The refusal is that of the first. */
function requireFeatures(models: readonly Model[], facts: RequestFacts): void {
  const [lacking, ...others] = models.map((model) => lackingFeature(model, facts))
  if (lacking === undefined || others.includes(undefined)) return
  throw new GatewayError('unsupported_feature', {
    param: facts.featureParams.get(lacking),
    message: `The model does not support ${FEATURE_WORDS[lacking]}. Drop it, or choose another model.`,
  })
}

/** Returns a feature that a request asks for and its model lacks. */
function lackingFeature({ features }: Model, facts: RequestFacts): Feature | undefined {
  return features && [...facts.features].find((feature) => !features.has(feature))
}

const FEATURE_WORDS: Readonly<Record<Feature, string>> = {
  stream: 'streaming',
  tools: 'tools',
  vision: 'image input',
  json: 'structured output',
  reasoning: 'reasoning settings',
}

/** Refuses a request that fits no line at all. `route` decides which lines it fits. */
function requireWindow(catalog: Catalog, models: readonly Model[], facts: RequestFacts): void {
  const { maxOutputTokens, windowTokens = facts.estimatedInputTokens } = facts
  const widest = Math.max(...models.map(({ id }) => catalog.widestWindow(id) ?? Infinity))
  if (widest < windowNeeded(windowTokens, maxOutputTokens))
    throw new GatewayError('context_too_long', {
      reason: contextReason({ windowTokens, maxOutputTokens }, widest),
    })
}
