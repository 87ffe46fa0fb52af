import { isMapping, Members } from './members.ts'
import type { Context } from './notes.ts'

/** What holds for all deployments that do not say otherwise. */
export interface LineDefaults {
  readonly timeoutMs: number | undefined
  readonly streamTimeoutMs: number | undefined
  readonly circuit: Readonly<Record<string, number>> | undefined
  readonly unsupported: 'drop' | undefined
}

type Numbers = Readonly<Record<string, number>> | undefined

/** LiteLLM's `timeout` is for the whole call, `stream_timeout` for the first chunk of a stream. */
export function readTimeouts(params: Members, defaults: LineDefaults): Numbers {
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

/** What every request gets in addition, and, as null, what none has. */
export function readBody(params: Members): Readonly<Record<string, unknown>> | undefined {
  const body: Record<string, unknown> = { ...params.mapping('extra_body') }
  for (const name of params.list('additional_drop_params'))
    if (typeof name === 'string' && /^\w+$/.test(name)) body[name] = null
    else params.note('additional_drop_params', `${String(name)} is no member of a request; left out`)
  return Object.keys(body).length > 0 ? body : undefined
}

export function readCircuit(params: Members, { circuit }: LineDefaults): Numbers {
  const resetMs = params.has('cooldown_time') ? params.milliseconds('cooldown_time') : undefined
  return resetMs === undefined ? circuit : { ...circuit, resetMs }
}

const HEADER_NAME = /^[\w!#$%&'*+.^`|~-]+$/
/** The HTTP client writes these itself. */
const OF_THE_CONNECTION =
  /^(connection|content-length|expect|keep-alive|te|trailer|transfer-encoding|upgrade)$/i

export function readHeaders(
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
export function readId(members: Members, name: string): string | undefined {
  const id = members.text(name)
  if (id === undefined || isId(id)) return id
  members.note(name, 'must be printable ASCII without spaces; left out')
  return undefined
}

export function isId(text: string): boolean {
  return /^[\x21-\x7e]{1,200}$/.test(text)
}

/** Returns `litellm_params` with the values of the entry of `credential_list` that it names. */
export function withCredential(
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
