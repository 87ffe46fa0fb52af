import { readAddress } from './address.ts'
import { type Facts, readFacts, readMaxOutput } from './facts.ts'
import { DEPLOYMENT_HINTS, PARAM_HINTS } from './hints.ts'
import { readServed, type Served } from './kinds.ts'
import {
  isId,
  type LineDefaults,
  readBody,
  readCircuit,
  readHeaders,
  readId,
  readTimeouts,
  readUnsupported,
  withCredential,
} from './line-settings.ts'
import { isMapping, Members } from './members.ts'
import type { Context } from './notes.ts'
import { PROVIDERS, providerByName, wayOut } from './providers.ts'

/** The members of a line that deployments must share to be one line. */
export interface LineSettings {
  readonly provider: string
  readonly protocol: 'openai' | 'anthropic'
  readonly baseUrl: string
  readonly apiKey: string | undefined
  readonly region: string | undefined
  readonly timeouts: Readonly<Record<string, number>> | undefined
  readonly circuit: Readonly<Record<string, number>> | undefined
  readonly headers: Readonly<Record<string, string>> | undefined
  readonly body: Readonly<Record<string, unknown>> | undefined
  readonly unsupported: 'drop' | undefined
}

/** LiteLLM's shares of the calls of a model: the first that one of its deployments has decides. */
export const SHARES = ['weight', 'rpm', 'tpm'] as const

/** An entry of `model_list`. */
export interface Deployment {
  /** `model_list[3]` */
  readonly path: string
  /** The id of its model. */
  readonly model: string
  readonly upstreamModel: string
  readonly lineId: string | undefined
  readonly served: Served
  readonly settings: LineSettings
  readonly facts: Facts
  readonly maxOutputTokens: number | undefined
  readonly shares: Readonly<Partial<Record<(typeof SHARES)[number], number>>>
  readonly order: number | undefined
}

/** What LiteLLM writes between the provider and the model to choose an API or to say the family of an Azure deployment. */
const ROUTE = /^(responses|o_series|gpt5_series)\/(.+)$/

/** What deployments take from elsewhere in the file. */
export interface Defaults extends LineDefaults {
  readonly credentials: readonly unknown[]
}

/** Reads an entry of `model_list`; undefined if it cannot become a line, which is noted. */
export function readDeployment(
  entry: unknown,
  path: string,
  defaults: Defaults,
  context: Context,
): Deployment | undefined {
  if (!isMapping(entry)) return void context.notes.add(path, 'is no mapping; left out')
  const whole = new Members(entry, path, context)
  const model = readModel(whole)
  if (model === undefined) return undefined
  const given = whole.mapping('litellm_params')
  if (!given) return void whole.note('litellm_params', 'is needed; the deployment is left out')
  const paramsPath = `${path}.litellm_params`
  const params = new Members(
    withCredential(given, paramsPath, defaults.credentials, context),
    paramsPath,
    context,
  )
  const info = new Members(whole.mapping('model_info') ?? {}, `${path}.model_info`, context)

  const upstream = readUpstream(params)
  if (!upstream) return undefined
  const { name, provider, upstreamModel, routeMode } = upstream
  const served = readServed(info, routeMode, [upstreamModel, info.text('base_model') ?? ''])
  const address = served && readAddress(params, name, provider, served.kind === 'rerank', context)
  if (!address) return undefined
  const { protocol } = provider
  const maxOutputTokens = served.kind === 'chat' ? readMaxOutput(params, info, protocol) : undefined
  const deployment = {
    path,
    model,
    upstreamModel,
    lineId: readId(info, 'id'),
    served,
    settings: {
      provider: name,
      protocol,
      ...address,
      region: readId(params, 'region_name'),
      timeouts: readTimeouts(params, defaults),
      circuit: readCircuit(params, defaults),
      headers: readHeaders(params, name, context),
      body: readBody(params),
      unsupported: readUnsupported(params) ?? defaults.unsupported,
    },
    facts: readFacts(params, info, served.kind, maxOutputTokens),
    maxOutputTokens,
    shares: readShares(params),
    order: params.number('order'),
  }
  params.tellRest(PARAM_HINTS)
  info.tellRestAtOnce()
  whole.tellRest(DEPLOYMENT_HINTS)
  return deployment
}

function readModel(whole: Members): string | undefined {
  const name = whole.text('model_name')
  if (name === undefined) return void whole.note('model_name', 'is needed; the deployment is left out')
  if (name.includes('*'))
    return void whole.note(
      'model_name',
      'models have no wildcards here: add a model and a name in `models` of the line for each; the deployment is left out',
    )
  const id = name.trim().replaceAll(/\s+/g, '-')
  if (!isId(id))
    return void whole.note(
      'model_name',
      'must be printable ASCII without spaces; the deployment is left out: rename it',
    )
  if (id !== name) whole.note('model_name', `cannot have spaces: callers write ${id}`)
  return id
}

function readUpstream(params: Members) {
  if (!params.has('model')) return void params.note('model', 'is needed; the deployment is left out')
  const full = params.text('model', 'the deployment is left out')
  if (full === undefined) return undefined
  const slash = full.indexOf('/')
  const prefix = slash > 0 ? full.slice(0, slash) : undefined
  const name = params.text('custom_llm_provider') ?? prefix ?? providerByName(full)
  if (name === undefined)
    return void params.note(
      'model',
      'names no provider; the deployment is left out: write one before it, such as openai/',
    )
  const provider = PROVIDERS.get(name)
  if (!provider) return void params.note('model', `no line can be made for ${name}/: ${wayOut(name)}`)
  const short = prefix === name ? full.slice(slash + 1) : full
  if (short === '' || short.includes('*'))
    return void params.note('model', 'must name one model; the deployment is left out')
  if (params.has('mock_response'))
    return void params.note('mock_response', 'lines call real upstreams; the deployment is left out')
  const [, route, bare = short] = ROUTE.exec(short) ?? []
  const routeMode =
    name === 'text-completion-openai' ? 'completion' : route === 'responses' ? route : undefined
  return { name, provider, upstreamModel: provider.fullName?.(bare) ?? bare, routeMode }
}

function readShares(params: Members): Deployment['shares'] {
  const shares: Partial<Record<(typeof SHARES)[number], number>> = {}
  for (const name of SHARES) {
    if (!params.has(name)) continue
    const share = params.number(name)
    if (share === undefined) continue
    shares[name] = share
    if (name !== 'weight') params.note(name, PARAM_HINTS[name] as string)
  }
  return shares
}
