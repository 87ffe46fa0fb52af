import { Fault, type Provider } from './faults.ts'
import { DEMO_MODELS, type DemoModel, demoModel } from './models.ts'

const CREATED = new Date('2026-01-01T00:00:00Z')

/** The body of `GET /v1/models`, in the provider's shape. */
export function listModels(provider: Provider): object {
  const data = DEMO_MODELS.map((model) => describe(model, provider))
  if (provider === 'openai') return { object: 'list', data }
  return {
    data,
    has_more: false,
    first_id: DEMO_MODELS[0]?.id ?? null,
    last_id: DEMO_MODELS.at(-1)?.id ?? null,
  }
}

/** The body of `GET /v1/models/{id}`; throws a `Fault` for a model that does not exist. */
export function getModel(id: string, provider: Provider): object {
  const model = demoModel(id)
  if (model === undefined) throw new Fault('unknown_model', { model: id })
  return describe(model, provider)
}

function describe({ id, does }: DemoModel, provider: Provider): object {
  return provider === 'openai'
    ? { id, object: 'model', created: CREATED.getTime() / 1000, owned_by: 'demo' }
    : { id, type: 'model', display_name: `${id} (${does})`, created_at: CREATED.toISOString() }
}
