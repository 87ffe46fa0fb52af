import type { NextFunction, Request, Response, Router } from 'express'
import { type Call, callOf } from '../../core/call/index.ts'
import type { Line, Model } from '../../core/catalog/index.ts'
import { type CatalogSource, catalogFrom, neededCatalog } from '../../core/catalog-source/index.ts'
import { protocolRouter } from '../../core/json-api/new-router.ts'
import { aFunction, anObject, checkOptions } from '../../core/options/index.ts'
import { checkedFunction } from '../../core/own-functions/index.ts'
import type { LineView } from '../../routing/lines/line-status.ts'

/** Options of {@link modelRoutes}. */
export interface ModelRoutesOptions {
  /**
   * The models and lines, or a function that returns them if they can change while the app runs. If the function always
   * returns the same catalogue for the same call, running calls are not affected by a change.
   */
  catalog: CatalogSource
  /**
   * Returns the JSON of a line for `…/routing`. Callers read it: no addresses, no secrets, and nothing that tells how much
   * others use the line. `LineRegistry.outline` includes the circuit state; `figures`, for operators, the load.
   * Defaults to the line's id, provider, protocol and region.
   */
  lineStatus?: (line: Line, view: LineView) => object
}

/**
 * Returns the routes `GET /models`, `/models/{id}` and `/models/{id}/routing`: the models that the caller's key may use,
 * and the candidate lines of a model. Ids with slashes work encoded and plain. The list has the form of the OpenAI API and
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
  })
  const { catalog } = options
  const lineStatus = checkedFunction(
    'modelRoutes: "lineStatus"',
    anObject('an object'),
    options.lineStatus ?? describeLine,
  )
  const catalogOf = catalogFrom(catalog)
  const router = protocolRouter()

  router.get('/models', function listModels(req: Request, res: Response): void {
    const call = callOf(req)
    const data = [...catalogOf(call).models.values()]
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
    const model = known.models.get(id)
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

function mayUse(call: Call, model: Model): boolean {
  return call.principal?.mayUseModel(model.id) ?? true
}

/** The creation date of all models: both APIs demand one, and the catalogue has none. */
const CREATED = 0

function describeModel(model: Model) {
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
