import type { Members } from './members.ts'
import type { Context } from './notes.ts'
import type { Provider } from './providers.ts'

const LEFT_OUT = 'the deployment is left out'

/** Where a deployment is, and the key for it. */
export interface Address {
  readonly baseUrl: string
  readonly apiKey: string | undefined
}

/** Reads the address of a deployment; undefined if there is none, which is noted. */
export function readAddress(
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
