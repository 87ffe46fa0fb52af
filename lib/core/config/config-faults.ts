import { isHeaderName, isHeaderValue } from '../catalog/header-text.ts'
import { ENDPOINTS_BY_PROTOCOL, isAddressOrBlock, isPattern, overlaps } from '../catalog/index.ts'
import { bySpecificity, patternFaults, upstreamNameFault } from '../catalog/model-patterns.ts'
import { didYouMean } from '../options/index.ts'
import { accessFaults } from './access-members.ts'
import type {
  ParsedConfig,
  ParsedKey,
  ParsedLine,
  ParsedModel,
  ParsedPrice,
  ParsedRule,
} from './config-schema.ts'
import { dialectFaults } from './dialect-members.ts'
import { COLLECTION_PATH, collectionOf, pathFault } from './pass-through-path.ts'
import type { Parts } from './valid-parts.ts'

/** Formats a path: `lines[2].baseUrl`. */
export function formatPath(path: readonly PropertyKey[]): string {
  let text = ''
  for (const part of path) {
    if (typeof part === 'number') text += `[${part}]`
    else text += text === '' ? String(part) : `.${String(part)}`
  }
  return text === '' ? '(top level)' : text
}

/** A config, or what is valid in one with faults. */
export type ConfigParts = Parts<ParsedConfig>

const NONE: readonly never[] = []

/** Returns the fault of a name that must be an id of a list; an empty text if the list has it. */
type Missing = (id: string) => string
type Known = Readonly<Record<'account' | 'model' | 'line', Missing>>

/**
 * Returns the faults that the schema cannot find: names that must exist or be unique, addresses, headers, and URLs with
 * more than an origin and a path.
 */
export function crossFaults(config: ConfigParts): string[] {
  const { accounts = [], keys = [], models = [], lines = [], passThrough = [], guards = [] } = config
  const known = {
    account: missingIn('account', config.accounts),
    model: missingModel(config.models),
    line: missingIn('line', config.lines, 1),
  }
  return [
    ...duplicates('accounts', accounts, 'id'),
    ...duplicates('keys', keys, 'id'),
    ...duplicates('keys', keys, 'secret'),
    ...duplicates('models', models, 'id'),
    ...patternFaults(models.map((model, i) => [`models[${i}].id`, model?.id ?? ''])),
    ...duplicates('lines', lines, 'id'),
    ...duplicates('passThrough', passThrough, 'path'),
    ...duplicates('guards', guards, 'name'),
    ...guards.flatMap((guard, i) =>
      missing(`guards[${i}].moderation.line`, guard?.moderation?.line, known.line),
    ),
    ...models.flatMap((model, i) => tierFaults(`models[${i}].price`, model?.price)),
    ...models.flatMap((model, i) => cacheFaults(`models[${i}].cache`, model ?? {})),
    ...models.flatMap((model, i) => fallbackFaults(`models[${i}].fallbacks`, model ?? {}, models, known)),
    ...lines.flatMap((line, i) =>
      (['price', 'cost'] as const).flatMap((name) => tierFaults(`lines[${i}].${name}`, line?.[name])),
    ),
    ...keys.flatMap((key, i) => keyFaults(i, key ?? {}, known)),
    ...lines.flatMap((line, i) => lineFaults(`lines[${i}]`, line ?? {}, known)),
    ...proxyFaults(config.trustProxy),
    ...budgetFaults(config),
    ...passThrough.flatMap((rule, i) => ruleFaults(`passThrough[${i}]`, rule ?? {}, known)),
  ]
}

/** Where the list itself has a fault, or an id of it, every name counts as known. */
function missingIn(
  what: string,
  items: readonly ({ readonly id?: string | undefined } | undefined)[] | undefined,
  least = 0,
): Missing {
  const ids = new Set(items?.map((item) => item?.id))
  if (items === undefined || items.length < least || ids.has(undefined)) return () => ''
  return (id) => (ids.has(id) ? '' : `there is no ${what} "${id}"${didYouMean(id, [...ids] as string[])}`)
}

/** A name is that of a model if a model has it as its id, or a pattern matches it. */
function missingModel(models: ConfigParts['models']): Missing {
  const missing = missingIn('model', models, 1)
  const ids = models?.flatMap((model) => model?.id ?? []) ?? []
  const patterns = ids.filter(isPattern)
  return (name) => {
    const isMatched = patterns.some((pattern) => overlaps(pattern, name))
    const matches = isPattern(name) && ids.some((id) => overlaps(name, id))
    return isMatched || matches ? '' : missing(name)
  }
}

/** @param i its place. There may be many keys: a path is only written for a fault. */
function keyFaults(
  i: number,
  { account, allowIps = NONE }: Parts<ParsedKey>,
  known: Known,
): readonly string[] {
  if (allowIps.length === 0 && (account === undefined || known.account(account) === '')) return NONE
  const path = `keys[${i}]`
  const faults = allowIps.flatMap((entry, at) =>
    entry === undefined || isAddressOrBlock(entry)
      ? []
      : [`${path}.allowIps[${at}]: "${entry}" is neither an address nor a CIDR block`],
  )
  return [...missing(`${path}.account`, account, known.account), ...faults]
}

function lineFaults(path: string, line: Parts<ParsedLine>, known: Known): string[] {
  const { baseUrl, protocol, endpoints = [], models = {}, headers = {} } = line
  const faults: string[] = []
  if (baseUrl !== undefined) {
    const { search, hash, username, password } = new URL(baseUrl)
    if (search + hash + username + password !== '')
      faults.push(`${path}.baseUrl: must not have a query, a fragment or credentials`)
  }
  if (protocol !== undefined) {
    const own: readonly string[] = ENDPOINTS_BY_PROTOCOL[protocol]
    for (const [i, name] of endpoints.entries()) {
      if (name !== undefined && !own.includes(name))
        faults.push(
          `${path}.endpoints[${i}]: no "${protocol}" line has "${name}"; it can have ${own.join(', ')}`,
        )
    }
  }
  faults.push(...dialectFaults(path, line))
  const names = Object.entries(models)
  for (const [model, upstream = ''] of names) {
    faults.push(...missing(`${path}.models.${model}`, model, known.model))
    const fault = upstreamNameFault(model, upstream)
    if (fault !== undefined) faults.push(`${path}.models.${model}: ${fault}`)
  }
  faults.push(...patternFaults(names.map(([model]) => [`${path}.models.${model}`, model])))
  const sentNames = new Set<string>()
  for (const [name, value = ''] of Object.entries(headers)) {
    const sent = name.toLowerCase()
    if (sentNames.has(sent)) faults.push(`${path}.headers.${name}: is there twice, in other letters`)
    sentNames.add(sent)
    if (!isHeaderName(name)) faults.push(`${path}.headers.${name}: is not a header name`)
    if (CONNECTION_HEADERS.has(sent))
      faults.push(`${path}.headers.${name}: belongs to the connection and cannot be set`)
    if (!isHeaderValue(value)) faults.push(`${path}.headers.${name}: is not a header value`)
  }
  return [...faults, ...accessFaults(path, line)]
}

/** The kinds of models whose calls another model can serve: vectors of two models differ, and a video is created once. */
const KINDS_WITH_FALLBACKS: ReadonlySet<string> = new Set(['chat', 'image', 'rerank'])

function fallbackFaults(
  path: string,
  { id, kind, fallbacks }: Parts<ParsedModel>,
  models: readonly (Parts<ParsedModel> | undefined)[],
  known: Known,
): string[] {
  if (fallbacks === undefined) return []
  if (kind !== undefined && !KINDS_WITH_FALLBACKS.has(kind))
    return [`${path}: a model of the kind "${kind}" cannot have any`]
  return fallbacks.flatMap((name, i) => {
    const at = `${path}[${i}]`
    if (name === undefined) return []
    if (name === id) return [`${at}: is the model itself`]
    if (isPattern(name)) return [`${at}: must be one model, without "*"`]
    if (fallbacks.indexOf(name) < i) return [`${at}: is the same as ${path}[${fallbacks.indexOf(name)}]`]
    const other = kindOf(name, models)
    if (other === undefined || kind === undefined || other === kind) return missing(at, name, known.model)
    return [`${at}: "${name}" is of the kind "${other}", not "${kind}"`]
  })
}

/** The kinds of models whose answers can be kept: addresses of images expire, and a video is created once. */
const KINDS_WITH_CACHE: ReadonlySet<string> = new Set(['chat', 'embedding', 'rerank'])

function cacheFaults(path: string, { kind, cache }: Parts<ParsedModel>): string[] {
  if (cache === undefined || kind === undefined || KINDS_WITH_CACHE.has(kind)) return []
  return [`${path}: a model of the kind "${kind}" cannot have one`]
}

/** Returns the kind of a model by its id, or by the pattern that matches it. */
function kindOf(name: string, models: readonly (Parts<ParsedModel> | undefined)[]): string | undefined {
  const own = models.find((model) => model?.id === name)
  const [pattern] = bySpecificity(models.flatMap((model) => model?.id ?? [])).filter((id) =>
    overlaps(id, name),
  )
  return (own ?? models.find((model) => model?.id === pattern))?.kind
}

/** Two tiers for the same calls would contradict each other. */
function tierFaults(path: string, price: Parts<ParsedPrice> | undefined): string[] {
  const tiers = price?.tiers?.map((tier) => {
    const { aboveInputTokens: above, serviceTier: served } = tier ?? {}
    return { aboveInputTokens: (above ?? served) ? `${above} ${served}` : undefined }
  })
  return duplicates(`${path}.tiers`, tiers ?? [], 'aboveInputTokens')
}

function ruleFaults(path: string, rule: Parts<ParsedRule>, known: Known): string[] {
  const faults: string[] = []
  const fault = rule.path === undefined ? undefined : pathFault(rule.path)
  if (fault !== undefined) faults.push(`${path}.path: ${fault}`)
  else if (rule.path !== undefined && rule.keeps !== undefined && collectionOf(rule.path) === undefined)
    faults.push(`${path}.keeps: needs ${COLLECTION_PATH}`)
  if (rule.path !== undefined && (rule.lines === undefined) === (rule.model === undefined))
    faults.push(`${path}: needs either "lines" or "model"`)
  if (Number(rule.cost?.perMinute ?? 0) > 0 && Number(rule.price?.perMinute ?? 0) === 0)
    faults.push(
      `${path}.cost.perMinute: needs a "perMinute" above 0 in "price": minutes are counted only there`,
    )
  for (const [i, name] of (rule.lines ?? []).entries()) {
    faults.push(...missing(`${path}.lines[${i}]`, name, known.line))
  }
  if (rule.model !== undefined && isPattern(rule.model))
    faults.push(`${path}.model: must be one model, without "*"`)
  return [...faults, ...missing(`${path}.model`, rule.model, known.model)]
}

function missing(path: string, id: string | undefined, faultOf: Missing): string[] {
  const fault = id === undefined ? '' : faultOf(id)
  return fault === '' ? [] : [`${path}: ${fault}`]
}

function budgetFaults({ bodyBudgetBytes, bodyLimitBytes }: ConfigParts): string[] {
  if (bodyBudgetBytes === undefined || bodyLimitBytes === undefined || bodyBudgetBytes >= bodyLimitBytes)
    return []
  return ['bodyBudgetBytes: must be at least bodyLimitBytes']
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

function duplicates<Member extends string>(
  list: string,
  items: readonly ({ readonly [name in Member]?: string | number | undefined } | undefined)[],
  member: Member,
): string[] {
  const seen = new Set<string | number>()
  const faults: string[] = []
  let different = 0
  // The list may be long.
  for (let i = 0; i < items.length; i++) {
    const value = items[i]?.[member]
    if (value === undefined) continue
    if (seen.add(value).size > different) different++
    else {
      const first = items.findIndex((other) => other?.[member] === value)
      faults.push(`${list}[${i}].${member}: is the same as that of ${list}[${first}]`)
    }
  }
  return faults
}

/** Express's names for ranges of addresses. */
const EXPRESS_RANGES = new Set(['loopback', 'linklocal', 'uniquelocal'])

function proxyFaults(trustProxy: ConfigParts['trustProxy']): string[] {
  const text = typeof trustProxy === 'string' ? trustProxy.split(',') : trustProxy
  if (!Array.isArray(text)) return []
  const entries = text.map((entry) => String(entry).trim())
  return entries
    .filter((entry) => !EXPRESS_RANGES.has(entry) && !isAddressOrBlock(entry))
    .map((entry) => `trustProxy: "${entry}" is neither an address nor a CIDR block`)
}
