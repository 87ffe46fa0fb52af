import type { NextFunction, Request, Response, Router } from 'express'
import { z } from 'zod'
import { callOf, type OpenCall, type Role } from '../../core/call/index.ts'
import { type Catalog, isPattern, type Line, type Model } from '../../core/catalog/index.ts'
import {
  type AnswerOf,
  answersWith,
  type EndpointDescription,
  newRouter,
  time,
} from '../../core/json-api/index.ts'
import {
  aFunction,
  anObject,
  type CatalogSource,
  catalogFrom,
  checkedFunction,
  checkOptions,
  neededCatalog,
  settled,
} from '../../core/options/index.ts'
import type { LineView } from '../../routing/lines/line-status.ts'
import { lineFigures, lineOutline } from './line-schemas.ts'

/** It has the members of both official APIs. */
const model = z.strictObject({
  id: z.string(),
  object: z.literal('model'),
  type: z.literal('model'),
  display_name: z.string(),
  created: z.int(),
  created_at: time,
  owned_by: z.string(),
  kind: z.string(),
  context_window: z.int().nullable().describe('null: not restricted.'),
  max_output_tokens: z.int().nullable(),
  features: z.array(z.string()).nullable(),
})
export type ModelAnswer = AnswerOf<typeof model>

const models = z.strictObject({
  object: z.literal('list'),
  data: z.array(model),
  has_more: z.literal(false),
  first_id: z.string().nullable(),
  last_id: z.string().nullable(),
})

const routingOf = (candidate: z.ZodType) =>
  z.strictObject({ object: z.literal('routing'), model: z.string(), candidates: z.array(candidate) })

/** The endpoints of callers. Clients of providers' protocols use them, and may send parameters that are not described. */
export const MODEL_ENDPOINTS: readonly EndpointDescription[] = describeEndpoints(
  ['listModels', 'getModel', 'getRouting'],
  'The models that this key may use',
  answersWith('Routing', routingOf(lineOutline)),
)

/** The endpoints of operators. */
export const ALL_MODEL_ENDPOINTS: readonly (EndpointDescription & { readonly role: Role })[] =
  describeEndpoints(
    ['listAllModels', 'getAnyModel', 'getAnyRouting'],
    'All models',
    answersWith('RoutingWithFigures', routingOf(lineFigures)),
  ).map((endpoint) => ({ ...endpoint, role: 'viewer' }))

function describeEndpoints(
  [list, one, routing]: readonly [list: string, one: string, routing: string],
  summary: string,
  routingAnswers: EndpointDescription['answers'],
): EndpointDescription[] {
  // Ids may have slashes.
  const common = { method: 'get', route: '/models/*id' } as const
  return [
    { id: list, method: 'get', path: '/models', summary, answers: answersWith('ModelList', models) },
    { ...common, id: one, path: '/models/{id}', summary: 'One model', answers: answersWith('Model', model) },
    {
      ...common,
      id: routing,
      path: '/models/{id}/routing',
      summary: 'The lines of a model',
      answers: routingAnswers,
    },
  ]
}

/** Options of {@link modelRoutes}. */
export interface ModelRoutesOptions {
  /**
   * The models and lines, or a function that returns them if they can change while the app runs. If the function always
   * returns the same catalogue for the same call, running calls are not affected by a change.
   */
  catalog: CatalogSource
  /**
   * Returns the JSON of a line for `…/routing`. Callers read it: no addresses, no secrets, and nothing about how much
   * others use the line. `LineRegistry.outline` includes the circuit state; `figures`, for operators, the load.
   * Defaults to the line's id, provider, protocol and region.
   */
  lineStatus?: (line: Line, view: LineView) => object
  /**
   * Returns the names that callers may use of models whose id is a pattern: `LineModels.names`. Defaults to none, so that the
   * list has no such models.
   */
  names?: (catalog: Catalog) => readonly string[] | Promise<readonly string[]>
}

/**
 * Returns the routes `GET /models`, `/models/{id}` and `/models/{id}/routing`: the models that the caller's key may use,
 * and the candidate lines of a model. A pattern is no model: the list has the names that it matches. Ids with slashes work encoded and plain. The list has the form of the OpenAI API and
 * the members of the Anthropic one, so that both official SDKs can read it. A model that does not exist, or that the key
 * may not use, is `model_not_found`.
 *
 * @throws TypeError at construction without a catalogue.
 * @example
 * app.use('/v1', authenticate({ keys }), modelRoutes({ catalog }))
 */
export function modelRoutes(options: ModelRoutesOptions): Router {
  checkOptions('modelRoutes', options, {
    catalog: neededCatalog,
    lineStatus: aFunction('a function of a line that returns an object'),
    names: aFunction('a function that returns names of models'),
  })
  const { catalog } = options
  const lineStatus = checkedFunction(
    'modelRoutes: "lineStatus"',
    anObject('an object'),
    options.lineStatus ?? describeLine,
  )
  const { names = () => [] } = options
  const catalogOf = catalogFrom(catalog)
  const router = newRouter()

  router.get('/models', async function listModels(req: Request, res: Response): Promise<void> {
    const call = callOf(req)
    const known = catalogOf(call)
    const own = [...known.models.values()].filter(({ id }) => !isPattern(id))
    const matched =
      own.length < known.models.size ? await settled('modelRoutes: "names"', () => names(known)) : []
    const data = [...own, ...matched.flatMap((name) => known.modelOf(name) ?? [])]
      .filter((model) => mayUse(call, model))
      .map(describeModel)
    const ids = { first_id: data[0]?.id ?? null, last_id: data.at(-1)?.id ?? null }
    res.json({ object: 'list', data, has_more: false, ...ids })
  })

  router.get('/models/*id', function showModel(req: Request, res: Response, next: NextFunction): void {
    const call = callOf(req)
    const segments = (req.params as unknown as { id: string[] }).id
    const wantsRouting = segments.length > 1 && segments.at(-1) === 'routing'
    const id = (wantsRouting ? segments.slice(0, -1) : segments).join('/')
    const known = catalogOf(call)
    const model = known.modelOf(id)
    if (!model || !mayUse(call, model)) next(call.refuse('model_not_found'))
    else if (!wantsRouting) res.json(describeModel(model))
    else
      res.json({
        object: 'routing',
        model: model.id,
        candidates: known
          .linesOf(id)
          .map((line) => lineStatus(line, { model: id, account: call.principal?.accountId })),
      })
  })

  return router
}

function mayUse(call: OpenCall, model: Model): boolean {
  return call.principal?.mayUseModel(model.id) ?? true
}

/** The creation date of all models: both APIs demand one, and the catalogue has none. */
const CREATED = 0

function describeModel(model: Model): ModelAnswer {
  return {
    id: model.id,
    object: 'model',
    type: 'model',
    display_name: model.id,
    created: CREATED,
    created_at: new Date(CREATED).toISOString(),
    owned_by: 'gateway',
    kind: model.kind,
    context_window: model.contextWindow ?? null,
    max_output_tokens: model.maxOutputTokens ?? null,
    features: model.features ? [...model.features] : null,
  }
}

function describeLine(line: Line): object {
  return { id: line.id, provider: line.provider, protocol: line.protocol, region: line.region ?? null }
}
