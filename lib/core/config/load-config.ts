import type { z } from 'zod'
import {
  type Catalog,
  createCatalog,
  FREE,
  type Line,
  type Model,
  type Price,
  parseAmount,
} from '../catalog/index.ts'
import { isJsonObject, type JsonObject } from '../json/index.ts'
import { crossFaults, formatPath } from './config-faults.ts'
import {
  configSchema,
  type ParsedAccount,
  type ParsedConfig,
  type ParsedKey,
  type ParsedLine,
  type ParsedModel,
} from './config-schema.ts'
import { validParts } from './valid-parts.ts'

/** Thrown if a config is not valid. The message has one line per fault, which names the path. */
export class ConfigError extends Error {
  override readonly name = 'ConfigError'
  /** `"lines[2].baseUrl: must be an http(s) URL"`, … */
  readonly faults: readonly string[]

  constructor(faults: readonly string[]) {
    const lines = faults.map(escapeControls)
    super(lines.join('\n'))
    this.faults = lines
  }
}

/** Escapes control characters and line breaks: faults repeat names of the config, which can hold any character. */
function escapeControls(fault: string): string {
  return fault.replace(/[\p{Cc}\u2028\u2029]/gu, (char) => {
    return `\\u${char.charCodeAt(0).toString(16).padStart(4, '0')}`
  })
}

/** A valid config with its secrets; models and lines are a {@link Catalog}. */
export interface GatewayConfig extends Omit<ParsedConfig, 'models' | 'lines' | '$schema'> {
  readonly accounts: ParsedAccount[]
  readonly keys: ParsedKey[]
  readonly catalog: Catalog
}

/**
 * Validates a config and fills in its defaults. `"env:NAME"` in `apiKey`, `secret`, `urlSigningSecret` and header
 * values is replaced by the variable of `env`.
 *
 * @param source the parsed JSON of the config file.
 * @param env the environment variables, usually `process.env`.
 * @throws {ConfigError} naming all faults.
 * @example
 * const config = loadConfig(JSON.parse(await readFile('gateway.json', 'utf8')), process.env)
 */
export function loadConfig(
  source: unknown,
  env: Readonly<Record<string, string | undefined>> = {},
): GatewayConfig {
  const { value, faults: secretFaults } = withSecrets(source, env)
  const parsed = configSchema.safeParse(value)
  const shapeFaults = parsed.success ? [] : parsed.error.issues.flatMap(describeIssue)
  const parts = parsed.success ? parsed.data : (validParts(configSchema, value) ?? {})
  const faults = [...shapeFaults, ...crossFaults(parts), ...secretFaults]
  if (!parsed.success || faults.length > 0) throw new ConfigError(faults)
  const { models, lines, $schema: _, ...rest } = parsed.data
  return { ...rest, catalog: createCatalog(models.map(toModel), lines.map(toLine)) }
}

/** Returns the faults of an issue; zod reports all unknown members of an object as one issue. */
function describeIssue(issue: z.core.$ZodIssue): string[] {
  if (issue.code !== 'unrecognized_keys') return [`${formatPath(issue.path)}: ${inOurWords(issue.message)}`]
  return issue.keys.map((key) => `${formatPath([...issue.path, key])}: is not a known member`)
}

/** What zod says, in the form of the other faults: what the member must be. */
const OUR_WORDS = [
  [/^Invalid input: expected (\w+), received undefined$/, 'is missing; it must be of type $1'],
  [/^Invalid input: expected (\w+), received (\w+)$/, 'must be of type $1, not $2'],
  [/ of type record\b/, ' of type object'],
  [/^Invalid option: expected one of /, 'must be one of '],
  [/^Too (?:small|big): expected \w+ to /, 'must '],
] as const

function inOurWords(message: string): string {
  return OUR_WORDS.reduce((text, [theirs, ours]) => text.replace(theirs, ours), message)
}

interface WithSecrets {
  value: unknown
  faults: string[]
}

/** Returns a copy of the source in which each `env:NAME` of a secret is replaced. */
function withSecrets(source: unknown, env: Readonly<Record<string, string | undefined>>): WithSecrets {
  const faults: string[] = []
  const resolve = (value: unknown, path: readonly PropertyKey[]): unknown => {
    if (typeof value !== 'string' || !value.startsWith('env:')) return value
    const name = value.slice(4)
    const secret = env[name]
    if (secret !== undefined && secret !== '') return secret
    faults.push(`${formatPath(path)}: the environment variable ${name} is not set`)
    return `unset:${formatPath(path)}`
  }
  if (!isJsonObject(source)) return { value: source, faults }
  const value: Record<string, unknown> = { ...source }
  if ('urlSigningSecret' in value)
    value.urlSigningSecret = resolve(value.urlSigningSecret, ['urlSigningSecret'])
  value.keys = mapItems(value.keys, (key, i) =>
    replace(key, 'secret', (v) => resolve(v, ['keys', i, 'secret'])),
  )
  value.lines = mapItems(value.lines, (line, i) => {
    const keyed = replace(line, 'apiKey', (v) => resolve(v, ['lines', i, 'apiKey']))
    return replace(keyed, 'headers', (headers) => {
      if (!isJsonObject(headers)) return headers
      return Object.fromEntries(
        Object.entries(headers).map(([name, v]) => [name, resolve(v, ['lines', i, 'headers', name])]),
      )
    })
  })
  if (value.keys === undefined) delete value.keys
  if (value.lines === undefined) delete value.lines
  return { value, faults }
}

function mapItems(list: unknown, edit: (item: JsonObject, index: number) => unknown): unknown {
  if (!Array.isArray(list)) return list
  return list.map((item, index) => (isJsonObject(item) ? edit(item, index) : item))
}

function replace(item: JsonObject, member: string, edit: (value: unknown) => unknown): JsonObject {
  return Object.hasOwn(item, member) ? { ...item, [member]: edit(item[member]) } : item
}

function toPrice(price: ParsedModel['price']): Partial<Price> {
  const entries = Object.entries(price).filter((entry): entry is [string, string] => entry[1] !== undefined)
  return Object.fromEntries(entries.map(([unit, text]) => [unit, parseAmount(text)]))
}

/** Fills in the prices of a model. Without prices of their own, cached tokens and cache writes cost as much as input. */
function toModelPrice(price: ParsedModel['price']): Price {
  const given = toPrice(price)
  const inputPerMillion = given.inputPerMillion ?? 0n
  return {
    ...FREE,
    cachedInputPerMillion: inputPerMillion,
    cacheWritePerMillion: inputPerMillion,
    ...given,
  }
}

function toModel(model: ParsedModel): Model {
  return {
    id: model.id,
    kind: model.kind,
    contextWindow: model.contextWindow,
    maxOutputTokens: model.maxOutputTokens,
    features: model.features && new Set(model.features),
    price: toModelPrice(model.price),
  }
}

function toLine(line: ParsedLine): Line {
  const url = new URL(line.baseUrl)
  return {
    id: line.id,
    provider: line.provider,
    protocol: line.protocol,
    origin: url.origin,
    basePath: url.pathname.replace(/\/+$/, ''),
    apiKey: line.apiKey,
    region: line.region,
    endpoints: line.endpoints && new Set(line.endpoints),
    enabled: line.enabled,
    priority: line.priority,
    weight: line.weight,
    models: new Map(Object.entries(line.models)),
    timeouts: line.timeouts,
    circuit: line.circuit,
    headers: Object.fromEntries(Object.entries(line.headers).map(([name, v]) => [name.toLowerCase(), v])),
    price: toPrice(line.price),
    features: line.features && new Set(line.features),
    contextWindow: line.contextWindow,
  }
}
