import { isDeepStrictEqual } from 'node:util'
import type { RequestHandler } from 'express'
import type { Call, GatewayConfig } from 'express-model-gateway'
import type { Catalog } from 'express-model-gateway/catalog'

/** The members of a config that a running gateway can replace. */
type Replaceable = Pick<GatewayConfig, 'catalog' | 'routing' | 'passThrough'>

/** The members of a config whose changes need a restart. */
const RESTART_MEMBERS = [
  'region',
  'bodyLimitBytes',
  'bodyBudgetBytes',
  'metrics',
  'lookupsPerMinute',
  'onStoreError',
  'onLedgerAway',
  'trustProxy',
  'cors',
] as const satisfies readonly (keyof GatewayConfig)[]

/** Returns the members that have changed since the start and need a restart. */
export function needsRestart(started: GatewayConfig, next: GatewayConfig): string[] {
  const members: string[] = RESTART_MEMBERS.filter(
    (member) => !isDeepStrictEqual(started[member], next[member]),
  )
  const exportsAlike = isDeepStrictEqual(started.retention.export, next.retention.export)
  return exportsAlike ? members : [...members, 'retention.export']
}

/** Returns a source with the members of another one that need a restart. */
export function keptUntilRestart(started: object, next: object): object {
  const kept: Record<string, unknown> = { ...next }
  const from: Record<string, unknown> = { ...started }
  for (const member of RESTART_MEMBERS) {
    if (from[member] === undefined) delete kept[member]
    else kept[member] = from[member]
  }
  const { export: exported, ...retention } = (kept.retention ?? {}) as Record<string, unknown>
  const exportedBefore = (from.retention as { export?: unknown } | undefined)?.export
  if (exported !== undefined || exportedBefore !== undefined)
    kept.retention = { ...retention, ...(exportedBefore !== undefined && { export: exportedBefore }) }
  return kept
}

const CATALOG = Symbol('catalog')

/** A call with its catalogue, so that a reload does not affect running calls. */
type CallWithCatalog = Call & { [CATALOG]?: Catalog }

/** Holds the part of the config that can change while the gateway runs. */
export class LiveConfig {
  #current: Replaceable
  readonly #followers: ((next: Replaceable) => void)[] = []

  constructor(config: Replaceable) {
    this.#current = config
  }

  /** Returns the catalogue of a call, which stays the same until the call ends; without a call, the current one. */
  readonly catalog = (call?: Call): Catalog => {
    if (!call) return this.#current.catalog
    const begun = call as CallWithCatalog
    begun[CATALOG] ??= this.#current.catalog
    return begun[CATALOG]
  }

  /** Returns a middleware that is created again whenever a member of the config, or the routing, changes. */
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
