import { isAddressOrBlock } from 'express-model-gateway/catalog'
import { GENERAL_HINTS, MODULE_HINTS, ROUTER_HINTS, TOP_HINTS } from './hints.ts'
import { type LineDefaults, readUnsupported } from './line-settings.ts'
import { Members } from './members.ts'
import type { Context } from './notes.ts'

const WEIGHTED = 'weighted'
const STRATEGIES: ReadonlyMap<string, string> = new Map([
  ['simple-shuffle', WEIGHTED],
  ['latency-based-routing', 'latency'],
  ['cost-based-routing', 'price'],
])

/** The settings of LiteLLM's file. What `router_settings` and `litellm_settings` both have, the first decides. */
export class Settings {
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
    const why =
      strategy === undefined ? 'has no counterpart' : 'cannot try lines last, as order and fallbacks need it'
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
  tellRest(): void {
    this.router.tellRest(ROUTER_HINTS)
    this.#module.tellRest(MODULE_HINTS)
    this.#general.tellRest(GENERAL_HINTS)
    const variables = this.#top.mapping('environment_variables') ?? {}
    for (const name of Object.keys(variables))
      this.#context.notes.add(
        `environment_variables.${name}`,
        'set it in the environment, or in a .env beside the config',
      )
    this.#top.tellRest(TOP_HINTS)
  }

  /** Returns the part of the file that decides about a member, if one has it. */
  either(name: string): Members | undefined {
    if (!this.router.has(name)) return this.#module.has(name) ? this.#module : undefined
    if (this.#module.take(name) !== undefined)
      this.#module.note(name, 'router_settings has it too, which counts')
    return this.router
  }
}
