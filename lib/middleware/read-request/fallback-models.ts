import { bodyFor, type Principal, type RequestBody } from '../../core/call/index.ts'
import type { Catalog, Model } from '../../core/catalog/index.ts'
import { GatewayError } from '../../core/errors/index.ts'
import type { Operation, ProviderConstraint } from '../../core/operations/index.ts'
import { wrongKind } from './wrong-kind.ts'

const NONE: readonly Model[] = []

/** Whether a request to an endpoint may name further models in `models`, as OpenRouter's endpoints have it. */
export function takesModels({ protocol, kind }: Operation): boolean {
  return protocol === 'openai' && kind === 'chat'
}

/** Returns a body that names its first model in `model`, also if the caller names it in `models` only. */
export function withFirstModel(body: RequestBody, operation: Operation): RequestBody {
  const { model, models } = body.json
  if ((model ?? undefined) !== undefined || !takesModels(operation) || !Array.isArray(models)) return body
  const [first] = models
  return typeof first === 'string' ? bodyFor(body, first) : body
}

/** The parts of a call that decide which models may follow its own. */
interface Following {
  readonly catalog: Catalog
  readonly model: Model
  readonly json: RequestBody['json']
  readonly operation: Operation
  readonly principal: Principal | null
  readonly constraint: ProviderConstraint | undefined
}

/**
 * Returns the models that follow if no line of a call's model can serve it: those that the request names, else those of the
 * config that the key may use.
 *
 * @throws {GatewayError} `invalid_request` or `model_not_allowed` for a model that the request names.
 */
export function fallbacksOf(following: Following): readonly Model[] {
  const { model, json, operation, constraint } = following
  const named = takesModels(operation) ? ((json.models ?? []) as readonly string[]) : []
  if (named.length > 0) return namedFallbacks(named, following)
  // The caller wants its first choice, or none.
  if (!model.fallbacks || constraint?.allowFallbacks === false) return NONE
  return configuredFallbacks(model.fallbacks, following)
}

function namedFallbacks(
  names: readonly string[],
  { catalog, model, operation, principal }: Following,
): readonly Model[] {
  const models = new Map<string, Model>()
  for (const [i, name] of names.entries()) {
    const param = `models[${i}]`
    const named = catalog.modelOf(name)
    if (!named)
      throw new GatewayError('invalid_request', {
        param,
        message: `There is no model with the id of ${param}. GET /v1/models lists the models available to you.`,
      })
    if (named.kind !== operation.kind) throw wrongKind(named, param)
    if (principal?.mayUseModel(named.id) === false)
      throw new GatewayError('model_not_allowed', {
        message: `This API key may not use the model of ${param}. GET /v1/models lists the models it may use.`,
      })
    if (named.id !== model.id) models.set(named.id, named)
  }
  return [...models.values()]
}

function configuredFallbacks(
  ids: readonly string[],
  { catalog, model, principal }: Following,
): readonly Model[] {
  return ids.flatMap((id) => {
    const fallback = catalog.modelOf(id)
    const mayServe = fallback?.kind === model.kind && principal?.mayUseModel(id) !== false
    return fallback && mayServe ? [fallback] : []
  })
}
