import { isDeepStrictEqual } from 'node:util'
import type { RequestHandler } from 'express'
import type { Call, GatewayConfig } from 'express-model-gateway'
import type { Catalog } from 'express-model-gateway/catalog'

/** What a running gateway takes over from a changed config; all else is of its start. */
type Replaceable = Pick<GatewayConfig, 'catalog' | 'routing' | 'passThrough'>

/** What a gateway is built on, so that only a new process takes a change of it over. */
const OF_THE_START = [
  'region',
  'bodyLimitBytes',
  'onStoreError',
  'onLedgerAway',
  'trustProxy',
  'urlSigningSecret',
] as const satisfies readonly (keyof GatewayConfig)[]

/** The members in which a config differs from the one of the start although only a restart takes them over. */
export function needsRestart(started: GatewayConfig, next: GatewayConfig): string[] {
  return OF_THE_START.filter((member) => !isDeepStrictEqual(started[member], next[member]))
}

/** The part of the config that can change while the gateway runs. It is replaced whole. */
export class LiveConfig {
  #current: Replaceable
  /** A call that has begun finishes on what it began with. */
  readonly #catalogs = new WeakMap<Call, Catalog>()
  readonly #followers: ((next: Replaceable) => void)[] = []

  constructor(config: Replaceable) {
    this.#current = config
  }

  /** The catalogue of a call: the one in force when it was first asked for. Without a call, the one in force now. */
  readonly catalog = (call?: Call): Catalog => {
    if (!call) return this.#current.catalog
    const known = this.#catalogs.get(call)
    if (known) return known
    this.#catalogs.set(call, this.#current.catalog)
    return this.#current.catalog
  }

  /** A middleware that is made anew when the member of the config that it is made of changes, or the routing does. */
  following<Member extends 'routing' | 'passThrough'>(
    member: Member,
    make: (value: Replaceable[Member], routing: Replaceable['routing']) => RequestHandler,
  ): RequestHandler {
    let made = this.#current
    let handler = make(made[member], made.routing)
    this.#followers.push((next) => {
      if (isDeepStrictEqual([made[member], made.routing], [next[member], next.routing])) return
      made = next
      handler = make(next[member], next.routing)
    })
    return (req, res, next) => handler(req, res, next)
  }

  replace(next: Replaceable): void {
    this.#current = next
    for (const follow of this.#followers) follow(next)
  }
}
