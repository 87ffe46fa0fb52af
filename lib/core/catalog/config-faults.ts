import { isAddressOrBlock } from './address.ts'
import type { ParsedConfig } from './config-schema.ts'
import { ENDPOINTS_BY_PROTOCOL, unsupportedEndpoints } from './endpoints.ts'
import { pathFault } from './pass-through-path.ts'

/** Formats a path: `lines[2].baseUrl`. */
export function formatPath(path: readonly PropertyKey[]): string {
  let text = ''
  for (const part of path) {
    if (typeof part === 'number') text += `[${part}]`
    else text += text === '' ? String(part) : `.${String(part)}`
  }
  return text === '' ? '(top level)' : text
}

/**
 * Returns the faults that the schema cannot find: names that must exist or be unique, addresses, headers, and URLs with
 * more than an origin and a path.
 */
export function crossFaults(config: ParsedConfig): string[] {
  const accounts = new Set(config.accounts.map(({ id }) => id))
  const models = new Set(config.models.map(({ id }) => id))
  const lines = new Set(config.lines.map(({ id }) => id))
  const faults = [
    ...duplicates('accounts', config.accounts, 'id'),
    ...duplicates('keys', config.keys, 'id'),
    ...duplicates('keys', config.keys, 'secret'),
    ...duplicates('models', config.models, 'id'),
    ...duplicates('lines', config.lines, 'id'),
    ...duplicates('passThrough', config.passThrough, 'path'),
  ]
  for (const [i, key] of config.keys.entries()) {
    if (!accounts.has(key.account)) faults.push(`keys[${i}].account: there is no account "${key.account}"`)
    for (const [j, entry] of (key.allowIps ?? []).entries()) {
      if (!isAddressOrBlock(entry)) {
        faults.push(`keys[${i}].allowIps[${j}]: "${entry}" is neither an address nor a CIDR block`)
      }
    }
  }
  for (const [i, line] of config.lines.entries()) {
    const url = new URL(line.baseUrl)
    if (url.search + url.hash + url.username + url.password !== '') {
      faults.push(`lines[${i}].baseUrl: must not have a query, a fragment or credentials`)
    }
    for (const [j, name] of unsupportedEndpoints(line.protocol, line.endpoints ?? [])) {
      const own = ENDPOINTS_BY_PROTOCOL[line.protocol].join(', ')
      faults.push(`lines[${i}].endpoints[${j}]: no "${line.protocol}" line has "${name}"; it can have ${own}`)
    }
    for (const model of Object.keys(line.models)) {
      if (!models.has(model)) faults.push(`lines[${i}].models.${model}: there is no model "${model}"`)
    }
    for (const [name, value] of Object.entries(line.headers)) {
      if (!/^[\w!#$%&'*+.^`|~-]+$/.test(name))
        faults.push(`lines[${i}].headers.${name}: is not a header name`)
      if (CONNECTION_HEADERS.has(name.toLowerCase()))
        faults.push(`lines[${i}].headers.${name}: belongs to the connection and cannot be set`)
      if (INVALID_IN_HEADER.test(value)) faults.push(`lines[${i}].headers.${name}: is not a header value`)
    }
    if (INVALID_IN_HEADER.test(line.apiKey ?? '')) {
      faults.push(`lines[${i}].apiKey: has characters that a header cannot hold, such as a line break`)
    }
  }
  for (const entry of proxyEntries(config.trustProxy)) {
    if (!EXPRESS_RANGES.has(entry) && !isAddressOrBlock(entry))
      faults.push(`trustProxy: "${entry}" is neither an address nor a CIDR block`)
  }
  const { bodyBudgetBytes, bodyLimitBytes } = config
  if (bodyBudgetBytes !== undefined && bodyBudgetBytes < bodyLimitBytes)
    faults.push('bodyBudgetBytes: must be at least bodyLimitBytes')
  for (const [i, rule] of config.passThrough.entries()) {
    const fault = pathFault(rule.path)
    if (fault !== undefined) faults.push(`passThrough[${i}].path: ${fault}`)
    if ((rule.lines === undefined) === (rule.model === undefined)) {
      faults.push(`passThrough[${i}]: needs either "lines" or "model"`)
    }
    for (const [j, name] of (rule.lines ?? []).entries()) {
      if (!lines.has(name)) faults.push(`passThrough[${i}].lines[${j}]: there is no line "${name}"`)
    }
    if (rule.model !== undefined && !models.has(rule.model)) {
      faults.push(`passThrough[${i}].model: there is no model "${rule.model}"`)
    }
  }
  return faults
}

/** The headers that the HTTP client writes itself. If the config set one, requests would fail or be corrupted. */
const CONNECTION_HEADERS = new Set([
  'connection',
  'content-length',
  'expect',
  'keep-alive',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
])

const INVALID_IN_HEADER = /[^\t\x20-\x7e\x80-\xff]/

function duplicates<K extends string>(
  list: string,
  items: readonly Record<K, string>[],
  member: K,
): string[] {
  const seen = new Map<string, number>()
  const faults: string[] = []
  for (const [i, item] of items.entries()) {
    const first = seen.get(item[member])
    if (first === undefined) seen.set(item[member], i)
    else faults.push(`${list}[${i}].${member}: is the same as that of ${list}[${first}]`)
  }
  return faults
}

/** Express's names for ranges of addresses. */
const EXPRESS_RANGES = new Set(['loopback', 'linklocal', 'uniquelocal'])

function proxyEntries(trustProxy: ParsedConfig['trustProxy']): string[] {
  if (typeof trustProxy === 'string') return trustProxy.split(',').map((entry) => entry.trim())
  return Array.isArray(trustProxy) ? trustProxy : []
}
