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

const CATALOG = Symbol('catalog')

/** A call that has begun finishes on what it began with. */
type BegunCall = Call & { [CATALOG]?: Catalog }

/** The part of the config that can change while the gateway runs. It is replaced whole. */
export class LiveConfig {
  #current: Replaceable
  readonly #followers: ((next: Replaceable) => void)[] = []

  constructor(config: Replaceable) {
    this.#current = config
  }

  /** The catalogue of a call: the one in force when it was first asked for. Without a call, the one in force now. */
  readonly catalog = (call?: Call): Catalog => {
    if (!call) return this.#current.catalog
    const begun = call as BegunCall
    begun[CATALOG] ??= this.#current.catalog
    return begun[CATALOG]
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
