import { isAddressOrBlock } from 'express-model-gateway/catalog'
import { type Deployment, isId, type LineDefaults, readDeployment, readUnsupported } from './deployments.ts'
import { GENERAL_HINTS, MODULE_HINTS, ROUTER_HINTS, TOP_HINTS } from './hints.ts'
import { type Groups, groupByModel, toLines, toModel } from './lines.ts'
import { type Context, isMapping, type Mapping, Members, Notes } from './members.ts'

/** A config of this gateway, made of LiteLLM's. */
export interface Converted {
  readonly config: object
  /** For each line of the config, the paths of what it comes from. */
  readonly from: readonly (readonly string[])[]
  /** One text for each thing that could not be carried over, or is not quite the same. */
  readonly notes: readonly string[]
}

export type LitellmFile = Mapping & { readonly model_list: readonly unknown[] }

const MAX_ATTEMPTS = 20
const USUAL_ATTEMPTS = 3

/**
 * Converts the content of LiteLLM's `config.yaml`.
 *
 * @param env the variables of this process, for `os.environ/NAME` where the config needs the value.
 */
export function convertLitellm(
  file: LitellmFile,
  env: Readonly<Record<string, string | undefined>>,
): Converted {
  const context = { notes: new Notes(), env: { ...env, ...variablesOf(file) } }
  const top = new Members(file, '', context)
  const settings = new Settings(top, context)
  const defaults = { ...settings.readLineDefaults(), credentials: top.list('credential_list') }
  top.take('model_list')
  const deployments = file.model_list
    .map((entry, i) => readDeployment(entry, `model_list[${i}]`, defaults, context))
    .filter((deployment): deployment is Deployment => deployment !== undefined)
  const groups = groupByModel(deployments, context)
  const aliases = addAliases(groups, readAliases(settings.router, context), context)
  const fallbacks = fallbacksOf(readFallbacks(settings), groups, aliases, context)
  const strategy = settings.readStrategy(deployments.some(({ order }) => order !== undefined))
  const access = settings.readAccess()
  const maxAttempts = Math.min(MAX_ATTEMPTS, settings.readAttempts() ?? USUAL_ATTEMPTS)
  settings.reportUnread()

  const models = [...groups].map(([id, candidates]) => toModel(id, candidates))
  const lines = toLines(models)
  const free = models.filter(
    ({ facts, candidates }) => !facts.price && candidates.every((one) => !one.facts.price),
  )
  if (free.length > 0)
    context.notes.add(
      'model_list',
      `LiteLLM has prices of its own, the config has none for ${free.map(({ id }) => id).join(', ')}: they are free until you set their price`,
    )
  const config = {
    ...access,
    models: models.map(({ id, kind, maxOutputTokens, facts }) => ({
      id,
      kind,
      maxOutputTokens,
      ...facts,
      fallbacks: fallbacks.get(id),
    })),
    lines: lines.map(({ line }) => line),
    routing: { strategy, maxAttempts },
  }
  return { config, from: lines.map(({ from }) => from), notes: context.notes.lines }
}

function variablesOf({ environment_variables: variables }: Mapping): Record<string, string> {
  if (!isMapping(variables)) return {}
  return Object.fromEntries(
    Object.entries(variables).filter((entry): entry is [string, string] => typeof entry[1] === 'string'),
  )
}

const WEIGHTED = 'weighted'
const STRATEGIES: ReadonlyMap<string, string> = new Map([
  ['simple-shuffle', WEIGHTED],
  ['latency-based-routing', 'latency'],
  ['cost-based-routing', 'price'],
])

/** The settings of LiteLLM's file. What `router_settings` and `litellm_settings` both have, the first decides. */
class Settings {
  readonly #top: Members
  readonly router: Members
  readonly #module: Members
  readonly #general: Members
  readonly #context: Context

  constructor(top: Members, context: Context) {
    const part = (name: string): Members => new Members(top.mapping(name) ?? {}, name, context)
    this.#top = top
    this.router = part('router_settings')
    this.#module = part('litellm_settings')
    this.#general = part('general_settings')
    this.#context = context
  }

  /** @param isOrdered whether some lines come only after others, which the strategies that measure cannot do. */
  readStrategy(isOrdered: boolean): string {
    const given = this.router.text('routing_strategy') ?? 'simple-shuffle'
    const strategy = STRATEGIES.get(given)
    if (strategy !== undefined && (strategy === WEIGHTED || !isOrdered)) return strategy
    const why = strategy === undefined ? 'has no counterpart' : 'cannot try lines last, as order needs it'
    this.router.note('routing_strategy', `${strategy ?? given} ${why}; "${WEIGHTED}" is taken`)
    return WEIGHTED
  }

  readLineDefaults(): LineDefaults {
    const requestTimeout = this.#module.milliseconds('request_timeout')
    const cooldown = this.either('cooldown_time')
    const fails = this.either('allowed_fails')
    const allowed = fails?.count('allowed_fails', 0)
    if (allowed !== undefined)
      fails?.note(
        'allowed_fails',
        `is minimumCalls ${allowed + 1} here: the circuit opens if half of the calls of a minute failed`,
      )
    const resetMs = cooldown?.milliseconds('cooldown_time')
    const circuit = {
      ...(allowed !== undefined && { minimumCalls: allowed + 1, windowMs: 60_000 }),
      ...(resetMs !== undefined && { resetMs }),
    }
    return {
      timeoutMs: this.router.milliseconds('timeout') ?? requestTimeout,
      streamTimeoutMs: this.router.milliseconds('stream_timeout'),
      circuit: Object.keys(circuit).length > 0 ? circuit : undefined,
      unsupported: readUnsupported(this.#module),
    }
  }

  /** @returns the number of attempts, as far as the file has one. */
  readAttempts(): number | undefined {
    const retries = this.either('num_retries')?.count('num_retries', 0)
    return retries === undefined ? undefined : retries + 1
  }

  /** Returns what the file says of callers and bodies: accounts, keys, bodyLimitBytes. */
  readAccess(): object {
    const general = this.#general
    const megabytes = general.number('max_request_size_mb', 1_000_000)
    const allowIps = general.list('allowed_ips').filter((ip, i) => {
      const isValid = typeof ip === 'string' && isAddressOrBlock(ip)
      if (!isValid) general.note(`allowed_ips[${i}]`, 'is neither an address nor a CIDR block; left out')
      return isValid
    })
    const secret = general.secret('master_key')
    const limit = megabytes !== undefined && {
      bodyLimitBytes: Math.max(1024, Math.round(megabytes * 1_048_576)),
    }
    if (secret === undefined || /[^\x21-\x7e]/.test(secret)) {
      const why = secret === undefined ? 'is not set' : 'has characters that no key can have'
      general.note(
        'master_key',
        `${why}, and here each call needs a key: add an account and a key to the config`,
      )
      if (allowIps.length > 0) general.note('allowed_ips', 'is allowIps of a key here')
      return { ...limit }
    }
    general.note('master_key', 'is a key for calls here: for the admin API, set ADMIN_TOKEN')
    return {
      ...limit,
      accounts: [{ id: 'litellm', name: 'From LiteLLM' }],
      keys: [{ id: 'master', account: 'litellm', secret, ...(allowIps.length > 0 && { allowIps }) }],
    }
  }

  /** Names what is left of the file. */
  reportUnread(): void {
    this.router.reportUnread(ROUTER_HINTS)
    this.#module.reportUnread(MODULE_HINTS)
    this.#general.reportUnread(GENERAL_HINTS)
    const variables = this.#top.mapping('environment_variables') ?? {}
    for (const name of Object.keys(variables))
      this.#context.notes.add(
        `environment_variables.${name}`,
        'set it in the environment, or in a .env beside the config',
      )
    this.#top.reportUnread(TOP_HINTS)
  }

  /** Returns the part of the file that decides about a member, if one has it. */
  either(name: string): Members | undefined {
    if (!this.router.has(name)) return this.#module.has(name) ? this.#module : undefined
    if (this.#module.take(name) !== undefined)
      this.#module.note(name, 'router_settings has it too, which counts')
    return this.router
  }
}

/** The models that aliases stand for, by alias. */
type Aliases = ReadonlyMap<string, string>

function readAliases(router: Members, { notes }: Context): Aliases {
  const aliases = new Map<string, string>()
  for (const [alias, value] of Object.entries(router.mapping('model_group_alias') ?? {})) {
    const path = pathOf(alias)
    const target = isMapping(value) ? value.model : value
    if (!isId(alias) || alias.includes('*'))
      notes.add(path, 'must be printable ASCII without spaces and "*"; left out')
    else if (typeof target !== 'string') notes.add(path, 'names no model; left out')
    else aliases.set(alias, target)
    if (isMapping(value) && value.hidden)
      notes.add(`${path}.hidden`, 'no model is hidden: GET /v1/models has it')
  }
  return aliases
}

/** Adds a model for each alias, on the lines of the model that it stands for. Returns the aliases that have become models. */
function addAliases(groups: Groups, given: Aliases, { notes }: Context): Aliases {
  const aliases = new Map<string, string>()
  for (const [alias, target] of given) {
    const lines = groups.get(target)
    if (target.includes('*')) notes.add(pathOf(alias), 'stands for a pattern, not for one model; left out')
    else if (!lines) notes.add(pathOf(alias), `no line was made for ${target}; left out`)
    else if (groups.has(alias)) notes.add(pathOf(alias), 'is a model itself; the alias is left out')
    else {
      const copies = lines.map((line) => ({ ...line, model: alias }))
      groups.set(alias, copies)
      aliases.set(alias, aliases.get(target) ?? target)
    }
  }
  return aliases
}

function pathOf(alias: string): string {
  return `router_settings.model_group_alias.${alias}`
}

/** The models that LiteLLM tries after a model. */
interface Fallback {
  readonly path: string
  /** `*` = each model that has no fallbacks of its own. */
  readonly model: string
  readonly targets: readonly unknown[]
}

function readFallbacks(settings: Settings): Fallback[] {
  const members = settings.either('fallbacks')
  const fallbacks = (members?.list('fallbacks') ?? []).flatMap((entry, i) =>
    Object.entries(isMapping(entry) ? entry : {}).map(([model, targets]) => ({
      path: `${members?.path}.fallbacks[${i}].${model}`,
      model,
      targets: Array.isArray(targets) ? targets : [targets],
    })),
  )
  const usual = settings.either('default_fallbacks')
  if (!usual) return fallbacks
  const path = `${usual.path}.default_fallbacks`
  return [...fallbacks, { path, model: '*', targets: usual.list('default_fallbacks') }]
}

/** The kinds of models that can have fallbacks. */
const KINDS_WITH_FALLBACKS: ReadonlySet<string> = new Set(['chat', 'image', 'rerank'])

/** Returns the fallbacks of each model that has some. An alias has those of the model that it stands for. */
function fallbacksOf(
  given: readonly Fallback[],
  groups: Groups,
  aliases: Aliases,
  { notes }: Context,
): ReadonlyMap<string, readonly string[]> {
  const real = (name: string): string => aliases.get(name) ?? name
  const kindOf = (model: string): string | undefined => groups.get(model)?.[0]?.served.kind
  const named = new Set(given.map(({ model }) => real(model)))
  const byModel = new Map<string, string[]>()

  /** Returns why a model cannot be the fallback of another one; undefined if it can. */
  function faultOf(model: string, fallback: string): string | undefined {
    const kind = kindOf(model) as string
    if (fallback.includes('*')) return 'a fallback must be one model; this one is left out'
    if (!groups.has(fallback)) return `no line was made for ${fallback}, so nothing falls back to it`
    if (kindOf(fallback) !== kind)
      return `${model} and ${fallback} are not of one kind, so nothing falls back to ${fallback}`
    return KINDS_WITH_FALLBACKS.has(kind)
      ? undefined
      : `${model} is of the kind "${kind}", which has no fallbacks`
  }

  function add(model: string, target: unknown, path: string): void {
    const fallback = typeof target === 'string' ? real(target) : undefined
    const own = byModel.get(model) ?? []
    if (fallback === real(model) || (fallback !== undefined && own.includes(fallback))) return
    const fault =
      fallback === undefined
        ? 'a fallback must be the name of a model; this one is left out'
        : faultOf(model, fallback)
    if (fallback === undefined || fault !== undefined) notes.add(path, `${fault}`)
    else byModel.set(model, [...own, fallback])
  }

  for (const { path, model, targets } of given) {
    const models = [...groups.keys()].filter((id) =>
      model === '*' ? !named.has(real(id)) : real(id) === real(model),
    )
    if (models.length === 0 && model !== '*')
      notes.add(path, `no line was made for ${real(model)}, so it has no fallbacks`)
    for (const one of models) for (const target of targets) add(one, target, path)
  }
  return byModel
}
