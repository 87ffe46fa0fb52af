import type { z } from 'zod'
import {
  type Catalog,
  createCatalog,
  FREE,
  type Line,
  type Model,
  type ModelCache,
  type Price,
  type PriceTier,
  parseAmount,
  pricedBy,
  type UnitPrices,
} from '../catalog/index.ts'
import { protoMembers } from '../json/index.ts'
import { didYouMean } from '../options/index.ts'
import { accessOf } from './access-members.ts'
import { crossFaults, formatPath } from './config-faults.ts'
import {
  configSchema,
  type ParsedConfig,
  type ParsedLine,
  type ParsedModel,
  type ParsedPrice,
} from './config-schema.ts'
import { dialectOf } from './dialect-members.ts'
import { knownMembers } from './json-schema.ts'
import { proxyByVariables, proxyVariableFaults } from './proxy-variables.ts'
import { type Variables, type WithSecrets, withSecrets } from './secrets.ts'
import { validParts } from './valid-parts.ts'

/** Thrown if a config is not valid. The message has one line per fault, which names the path. */
export class ConfigError extends Error {
  override readonly name = 'ConfigError'
  /** `"lines[2].baseUrl: must be an http(s) URL"`, … */
  readonly faults: readonly string[]
  /** The files that the config names for secrets, read or not. */
  readonly secretFiles: ReadonlySet<string>

  constructor(faults: readonly string[], secretFiles: ReadonlySet<string> = new Set()) {
    const lines = faults.map(escapeControls)
    super(lines.join('\n'))
    this.faults = lines
    this.secretFiles = secretFiles
  }
}

/** Escapes control characters and line breaks: faults repeat names of the config, which can hold any character. */
function escapeControls(fault: string): string {
  return fault.replace(/[\p{Cc}\u2028\u2029]/gu, (char) => {
    return `\\u${char.charCodeAt(0).toString(16).padStart(4, '0')}`
  })
}

/**
 * The content of a config file. Types come from its schema: a member that the schema does not know does not compile.
 *
 * @example
 * const config: GatewayConfig = { models: [{ id: 'chat-small', kind: 'chat' }], lines: [] }
 */
export type GatewayConfig = z.input<typeof configSchema>

/** A valid config with its secrets; models and lines are a {@link Catalog}. */
export interface LoadedConfig extends Omit<ParsedConfig, 'models' | 'lines' | '$schema'> {
  readonly catalog: Catalog
  /** The files that secrets were read from. */
  readonly secretFiles: ReadonlySet<string>
  /** The source with its secrets in the places of `env:NAME` and `file:PATH`. Processes that load it have the same config. */
  readonly resolved: object
}

/**
 * Validates a config and fills in its defaults. In secrets `"env:NAME"` is replaced by the variable of `env`, and
 * `"file:PATH"` by what the file holds.
 *
 * @param source the content of the config file.
 * @param env the environment variables, usually `process.env`. HTTPS_PROXY and NO_PROXY are read, too.
 * @throws {ConfigError} naming all faults.
 * @example
 * const config = loadConfig(JSON.parse(await readFile('gateway.json', 'utf8')), process.env)
 */
export function loadConfig(source: GatewayConfig, env: Variables = {}): LoadedConfig {
  return load(withSecrets(source, env), env)
}

/**
 * Loads what another process has resolved. A secret that reads like `env:NAME` or `file:PATH` is one as it stands.
 *
 * @throws {ConfigError} naming all faults.
 */
export function loadResolvedConfig(resolved: object, env: Variables = {}): LoadedConfig {
  return load({ value: resolved, faults: [], files: new Set() }, env)
}

function load(
  { value, faults: secretFaults, files: secretFiles }: WithSecrets,
  env: Variables,
): LoadedConfig {
  const parsed = configSchema.safeParse(value)
  const shapeFaults = parsed.success ? [] : parsed.error.issues.flatMap(describeIssue)
  const parts = parsed.success ? parsed.data : (validParts(configSchema, value) ?? {})
  const protoFaults = protoMembers(value).map((path) => `${formatPath(path)}: ${UNKNOWN}`)
  const faults = [
    ...new Set([...shapeFaults, ...protoFaults]),
    ...crossFaults(parts),
    ...secretFaults,
    ...proxyVariableFaults(env),
  ]
  if (!parsed.success || faults.length > 0) throw new ConfigError(faults, secretFiles)
  const { models, lines, $schema: _, ...rest } = parsed.data
  return {
    ...rest,
    catalog: createCatalog(
      models.map(toModel),
      lines.map((line) => toLine(line, env)),
    ),
    secretFiles,
    resolved: value as object,
  }
}

/** Returns the faults of an issue; zod reports all unknown members of an object as one issue. */
function describeIssue(issue: z.core.$ZodIssue): string[] {
  if (issue.code !== 'unrecognized_keys') return [`${formatPath(issue.path)}: ${inOurWords(issue.message)}`]
  const known = knownMembers(issue.path)
  return issue.keys.map((key) => `${formatPath([...issue.path, key])}: ${UNKNOWN}${didYouMean(key, known)}`)
}

const UNKNOWN = 'is not a known member'

/** The messages of zod, and their replacements in the form of the other faults: what the member must be. */
const OUR_WORDS = [
  [/^Invalid input: expected (\w+), received undefined$/, 'is missing; it must be of type $1'],
  [/^Invalid input: expected (\w+), received (\w+)$/, 'must be of type $1, not $2'],
  [/ of type record\b/, ' of type object'],
  [/^Invalid option: expected one of /, 'must be one of '],
  [/^Too (?:small|big): expected \w+ to /, 'must '],
  [/^must have >=1 (item|character)s$/, 'must have at least one $1'],
  [/^must (be|have) >=/, 'must $1 at least '],
  [/^must (be|have) <=/, 'must $1 at most '],
] as const

function inOurWords(message: string): string {
  return OUR_WORDS.reduce((text, [theirs, ours]) => text.replace(theirs, ours), message)
}

function toPrice({ tiers, ...units }: ParsedPrice): Partial<Price> {
  return { ...toUnits(units), ...(tiers && { tiers: tiers.map(toTier) }) }
}

function toTier({
  aboveInputTokens,
  serviceTier,
  ...units
}: NonNullable<ParsedPrice['tiers']>[number]): PriceTier {
  return {
    ...(aboveInputTokens !== undefined && { aboveInputTokens }),
    ...(serviceTier !== undefined && { serviceTier }),
    ...toUnits(units),
  }
}

function toUnits(units: Omit<ParsedPrice, 'tiers'>): Partial<UnitPrices> {
  const entries = Object.entries(units).filter((entry): entry is [string, string] => entry[1] !== undefined)
  return Object.fromEntries(entries.map(([unit, text]) => [unit, parseAmount(text)]))
}

function toModel(model: ParsedModel): Model {
  return {
    id: model.id,
    kind: model.kind,
    contextWindow: model.contextWindow,
    maxOutputTokens: model.maxOutputTokens,
    features: model.features && new Set(model.features),
    price: pricedBy(FREE, toPrice(model.price)),
    ...(model.fallbacks && { fallbacks: model.fallbacks }),
    ...(model.cache && { cache: toCache(model.cache) }),
  }
}

function toCache({ ttlSeconds, hitPrice }: NonNullable<ParsedModel['cache']>): ModelCache {
  return { ttlMs: ttlSeconds * 1000, hitPrice: parseAmount(hitPrice) }
}

function toLine(line: ParsedLine, env: Variables): Line {
  const url = new URL(line.baseUrl)
  return {
    id: line.id,
    provider: line.provider,
    protocol: line.protocol,
    origin: url.origin,
    basePath: url.pathname.replace(/\/+$/, ''),
    apiKey: typeof line.apiKey === 'string' ? line.apiKey : undefined,
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
    cost: line.cost && pricedBy(FREE, toPrice(line.cost)),
    features: line.features && new Set(line.features),
    contextWindow: line.contextWindow,
    unsupported: line.unsupported,
    ...dialectOf(line.protocol, line),
    ...accessOf(line, () => proxyByVariables(url, env)),
  }
}
