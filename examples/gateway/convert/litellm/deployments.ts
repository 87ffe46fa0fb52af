import { DEPLOYMENT_HINTS, PARAM_HINTS } from './hints.ts'
import { type Context, isMapping, Members } from './members.ts'
import { type Prices, readPrices } from './prices.ts'
import { PROVIDERS, type Provider, providerByName, suggestionFor } from './providers.ts'

/** The members of a line that deployments must share to be one line. */
interface LineSettings {
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

/** The part between provider and model by which LiteLLM chooses an API, or names the family of an Azure deployment. */
const ROUTE = /^(responses|o_series|gpt5_series)\/(.+)$/

/** The values that deployments take from elsewhere in the file. */
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
  if (upstream.upstreamModel.includes('*') && !model.includes('*'))
    return void params.note('model', 'has a "*" that model_name does not have; the deployment is left out')
  const { name, provider, upstreamModel, routeMode } = upstream
  const served = readServed(info, routeMode, [upstreamModel, info.text('base_model') ?? ''])
  const address = served && readAddress(params, name, provider, served.kind === 'rerank', context)
  if (!address) return undefined
  const { protocol } = provider
  const maxOutputTokens = served.kind === 'chat' ? readMaxOutput(params, info, protocol) : undefined
  const deployment = {
    path,
    model,
    // LiteLLM's star is the part that the pattern's stands for; alone, it is the whole name here.
    upstreamModel: upstreamModel === '*' && model !== '*' ? '$1' : upstreamModel,
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
  params.reportUnread(PARAM_HINTS)
  info.reportUnreadTogether()
  whole.reportUnread(DEPLOYMENT_HINTS)
  return deployment
}

function readModel(whole: Members): string | undefined {
  const name = whole.text('model_name')
  if (name === undefined) return void whole.note('model_name', 'is needed; the deployment is left out')
  const id = name.trim().replaceAll(/\s+/g, '-')
  if (!isId(id))
    return void whole.note(
      'model_name',
      'must be printable ASCII without spaces; the deployment is left out: rename it',
    )
  if (id.split('*').length > 2)
    return void whole.note('model_name', 'can have one "*" only; the deployment is left out')
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
  if (!provider) return void params.note('model', `no line can be made for ${name}/: ${suggestionFor(name)}`)
  const short = prefix === name ? full.slice(slash + 1) : full
  if (short === '' || short.split('*').length > 2)
    return void params.note('model', 'must name a model, with one "*" at most; the deployment is left out')
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

const LEFT_OUT = 'the deployment is left out'

/** Where a deployment is, and the key for it. */
export interface Address {
  readonly baseUrl: string
  readonly apiKey: string | undefined
}

/** Reads the address of a deployment; undefined if there is none, which is noted. */
function readAddress(
  params: Members,
  name: string,
  provider: Provider,
  isRerank: boolean,
  { env }: Context,
): Address | undefined {
  const baseUrl = readBaseUrl(params, name, provider, isRerank, env)
  if (baseUrl === undefined) return undefined
  const hasKey = params.has('api_key')
  const apiKey = params.secret('api_key')
  if (hasKey || provider.keyVariable === undefined) return { baseUrl, apiKey }
  if (params.has('azure_ad_token') || params.has('client_secret')) {
    params.note('azure_ad_token', 'Azure AD tokens end, and no line renews them: the line needs an API key')
    params.take('azure_ad_token')
  }
  return { baseUrl, apiKey: `env:${provider.keyVariable}` }
}

function readBaseUrl(
  params: Members,
  name: string,
  provider: Provider,
  isRerank: boolean,
  env: Context['env'],
): string | undefined {
  const member = params.has('base_url') && !params.has('api_base') ? 'base_url' : 'api_base'
  const isGiven = params.has(member)
  const given = isGiven ? params.text(member, LEFT_OUT) : env[`${name.toUpperCase()}_API_BASE`]
  if (given === undefined) {
    if (isGiven) return undefined
    const usual = (isRerank ? provider.rerankUrl : undefined) ?? provider.baseUrl
    if (usual !== undefined) return usual
    params.note(member, `is needed for this provider; ${LEFT_OUT}`)
    return undefined
  }
  const apiBase = given.replace(/\/+$/, '')
  const baseUrl = provider.fromApiBase ? provider.fromApiBase(apiBase) : apiBase
  if (baseUrl === undefined) {
    params.note(
      member,
      `LiteLLM speaks the provider's own protocol there, and no line does; the deployment is left out: remove the member for ${provider.baseUrl}, or add a line with an OpenAI-style baseUrl`,
    )
    return undefined
  }
  if (isBaseUrl(baseUrl)) return baseUrl
  params.note(
    member,
    'is no http(s) URL without a query and credentials, as a line needs; the deployment is left out',
  )
  return undefined
}

function isBaseUrl(text: string): boolean {
  if (!URL.canParse(text)) return false
  const { protocol, search, hash, username, password } = new URL(text)
  return /^https?:$/.test(protocol) && search + hash + username + password === ''
}

/** The kind of a deployment's model, and the endpoint that it serves. */
export interface Served {
  readonly kind: 'chat' | 'embedding' | 'image' | 'rerank' | 'video'
  readonly endpoint: string
}

const CHAT: Served = { kind: 'chat', endpoint: 'chat/completions' }
const EMBEDDING: Served = { kind: 'embedding', endpoint: 'embeddings' }
const IMAGE: Served = { kind: 'image', endpoint: 'images/generations' }
const RERANK: Served = { kind: 'rerank', endpoint: 'rerank' }
const VIDEO: Served = { kind: 'video', endpoint: 'videos' }

/** By LiteLLM's `mode`. */
export const MODES: ReadonlyMap<string, Served> = new Map([
  ['chat', CHAT],
  ['completion', { kind: 'chat', endpoint: 'completions' }],
  ['responses', { kind: 'chat', endpoint: 'responses' }],
  ['embedding', EMBEDDING],
  ['image_generation', IMAGE],
  ['rerank', RERANK],
  ['video_generation', VIDEO],
])

/** LiteLLM knows the mode of most models from a list of its own, so that files rarely say it. */
const BY_NAME: readonly (readonly [name: RegExp, mode: string])[] = [
  [/rerank/, 'rerank'],
  [/embed|(^|[-_/])(bge|e5|gte|minilm)-/, 'embedding'],
  [/dall-e|gpt-image|imagen|stable-diffusion|(^|[-_/])flux[-._]/, 'image_generation'],
  [/(^|[-_/])(sora|veo)-/, 'video_generation'],
  [/whisper|transcribe/, 'audio_transcription'],
  [/(^|[-_/])tts(-|$)/, 'audio_speech'],
  [/moderation/, 'moderation'],
  [/realtime/, 'realtime'],
]

/**
 * Returns what a deployment serves, by its `mode` or else its names; undefined if that has no model here, which is noted.
 *
 * @param routeMode the mode that the route says, such as that of `azure/responses/…`.
 * @param names the provider's name of the model and its `base_model`.
 */
function readServed(
  info: Members,
  routeMode: string | undefined,
  names: readonly string[],
): Served | undefined {
  const given = info.text('mode')
  const guessed = BY_NAME.find(([name]) => names.some((text) => name.test(text.toLowerCase())))?.[1]
  const mode = given ?? routeMode ?? guessed ?? 'chat'
  const served = MODES.get(mode)
  if (!served) {
    info.note(
      'mode',
      `${given ? 'has' : 'is not set, but the name has it:'} ${mode}, which no model here has; the deployment is left out: add a line without models and a rule of passThrough for its path`,
    )
  } else if (mode === guessed && given === undefined) {
    info.note(
      'mode',
      `is not set; "${served.kind}" was taken from the name: see whether the model's kind is right`,
    )
  }
  if (served?.endpoint === 'responses')
    info.note(
      'mode',
      'responses: chat calls are not translated to it, so callers use /v1/responses; if the provider has the model at chat/completions, add that to the endpoints of the line',
    )
  return served
}

/** The settings of all deployments that have none of their own. */
export interface LineDefaults {
  readonly timeoutMs: number | undefined
  readonly streamTimeoutMs: number | undefined
  readonly circuit: Readonly<Record<string, number>> | undefined
  readonly unsupported: 'drop' | undefined
}

type Numbers = Readonly<Record<string, number>> | undefined

/** LiteLLM's `timeout` is for the whole call, `stream_timeout` for the first chunk of a stream. */
function readTimeouts(params: Members, defaults: LineDefaults): Numbers {
  const total = params.milliseconds('timeout') ?? defaults.timeoutMs
  const own = params.milliseconds('stream_timeout')
  const first = own ?? defaults.streamTimeoutMs
  if (own !== undefined)
    params.note('stream_timeout', 'is firstByteMs here, which also ends an answer that is no stream')
  // An answer that is no stream may begin as late as it may end.
  const firstByteMs = first ?? total
  if (firstByteMs === undefined) return undefined
  return { firstByteMs, ...(total !== undefined && { totalMs: total }) }
}

/** LiteLLM's `drop_params`, of all deployments or of one. */
export function readUnsupported(members: Members): 'drop' | undefined {
  if (members.flag('drop_params') !== true) return undefined
  members.note(
    'drop_params',
    'is "unsupported": "drop" of lines here: what cannot be translated is dropped; a line of the same protocol gets requests as they are',
  )
  return 'drop'
}

/** Returns the members that are added to every request; a member that is removed from every request is null. */
function readBody(params: Members): Readonly<Record<string, unknown>> | undefined {
  const body: Record<string, unknown> = { ...params.mapping('extra_body') }
  for (const name of params.list('additional_drop_params'))
    if (typeof name === 'string' && /^\w+$/.test(name)) body[name] = null
    else params.note('additional_drop_params', `${String(name)} is no member of a request; left out`)
  return Object.keys(body).length > 0 ? body : undefined
}

function readCircuit(params: Members, { circuit }: LineDefaults): Numbers {
  const resetMs = params.has('cooldown_time') ? params.milliseconds('cooldown_time') : undefined
  return resetMs === undefined ? circuit : { ...circuit, resetMs }
}

const HEADER_NAME = /^[\w!#$%&'*+.^`|~-]+$/
/** The HTTP client writes these itself. */
const OF_THE_CONNECTION =
  /^(connection|content-length|expect|keep-alive|te|trailer|transfer-encoding|upgrade)$/i

function readHeaders(
  params: Members,
  provider: string,
  context: Context,
): Readonly<Record<string, string>> | undefined {
  const headers: Record<string, string> = {}
  for (const member of ['headers', 'extra_headers']) {
    const given = params.mapping(member)
    if (!given) continue
    const values = new Members(given, `${params.path}.${member}`, context)
    for (const name of Object.keys(given)) {
      if (!HEADER_NAME.test(name) || OF_THE_CONNECTION.test(name))
        values.note(name, 'is no header that a line can set; left out')
      else {
        const value = values.secret(name)
        if (value !== undefined) headers[name] = value
      }
    }
  }
  if (provider === 'openai' && params.has('organization')) {
    const organization = params.secret('organization')
    if (organization !== undefined) headers['OpenAI-Organization'] = organization
  }
  return Object.keys(headers).length > 0 ? headers : undefined
}

/** Returns an id of this gateway, such as a region; undefined if there is none, or none that can be an id. */
function readId(members: Members, name: string): string | undefined {
  const id = members.text(name)
  if (id === undefined || isId(id)) return id
  members.note(name, 'must be printable ASCII without spaces; left out')
  return undefined
}

export function isId(text: string): boolean {
  return /^[\x21-\x7e]{1,200}$/.test(text)
}

/** Returns `litellm_params` with the values of the entry of `credential_list` that it names. */
function withCredential(
  params: Readonly<Record<string, unknown>>,
  path: string,
  credentials: readonly unknown[],
  { notes }: Context,
): Readonly<Record<string, unknown>> {
  const { litellm_credential_name: name, ...own } = params
  if (name === undefined || name === null) return params
  const found = credentials.find((entry) => isMapping(entry) && entry.credential_name === name)
  const values = isMapping(found) ? found.credential_values : undefined
  if (isMapping(values)) return { ...values, ...own }
  notes.add(
    `${path}.litellm_credential_name`,
    'is not in credential_list: set the key and the address of the line',
  )
  return own
}

/** The facts that a model and its lines can both state; those of the line take precedence. */
export interface Facts {
  readonly price?: Prices | undefined
  readonly contextWindow?: number | undefined
  readonly features?: readonly string[] | undefined
}

const FEATURES: Readonly<Record<string, string>> = {
  supports_function_calling: 'tools',
  supports_vision: 'vision',
  supports_response_schema: 'json',
  supports_reasoning: 'reasoning',
}
const ALL_FEATURES = ['stream', 'tools', 'vision', 'json', 'reasoning']

function readFacts(params: Members, info: Members, kind: string, maxOutput: number | undefined): Facts {
  const price = readPrices(params, info, kind)
  return {
    price: Object.keys(price).length > 0 ? price : undefined,
    contextWindow: readContextWindow(info, kind, maxOutput),
    features: readFeatures(info),
  }
}

/** LiteLLM limits input and output each; a context window is for both together. */
export function readContextWindow(
  info: Members,
  kind: string,
  maxOutput: number | undefined,
): number | undefined {
  const input = info.count('max_input_tokens')
  return input === undefined ? undefined : input + (kind === 'chat' ? (maxOutput ?? 0) : 0)
}

/** A model that does not say what it supports is not restricted. So only what it does not support is written. */
export function readFeatures(info: Members): readonly string[] | undefined {
  const missing = Object.entries(FEATURES).flatMap(([name, feature]) =>
    info.flag(name) === false ? [feature] : [],
  )
  return missing.length === 0 ? undefined : ALL_FEATURES.filter((feature) => !missing.includes(feature))
}

/** Returns the most output tokens. LiteLLM's `max_tokens` of a deployment is sent with each call that has none. */
function readMaxOutput(params: Members, info: Members, protocol: string): number | undefined {
  const limit = info.count('max_output_tokens')
  const usual = params.count('max_tokens')
  if (usual !== undefined && protocol === 'openai')
    params.note(
      'max_tokens',
      `is not added to requests here: callers send it${limit ? '' : '; maxOutputTokens only says what a call can cost'}`,
    )
  if (usual !== undefined && protocol === 'anthropic' && limit !== undefined && limit !== usual)
    params.note('max_tokens', 'maxOutputTokens is sent in its place, if a caller sends none')
  return limit ?? usual
}
