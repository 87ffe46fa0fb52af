import type { RequestHandler } from 'express'
import type { GatewayConfig, LeasePoolOptions, Logger } from 'express-model-gateway'
import type { ConfigAuthority } from 'express-model-gateway/admin'
import type { DurableStores } from './durable-stores.ts'
import type { LimitStores } from './limit-stores.ts'
import type { Peers } from './peers.ts'
import type { Readiness } from './readiness.ts'
import type { RegionalStores } from './regional-stores.ts'
import type { ProviderSettings } from './single-sign-on/provider-settings.ts'

/** What the gateway is put together from. */
export interface GatewayParts {
  readonly config: GatewayConfig
  readonly stores: DurableStores & Pick<LimitStores, 'limits' | 'state' | 'lineStates'>
  readonly logger: Logger
  readonly readiness: Readiness
  /** What opens the admin API; undefined = there is none. */
  readonly adminToken: string | undefined
  /** The provider that operators sign in at; undefined = there is none. */
  readonly signInProvider?: ProviderSettings | undefined
  /** What compares config and database, for operators. */
  readonly authority?: ConfigAuthority
  /** Answers `GET /metrics`; undefined = there is none. */
  readonly metricsPage?: RequestHandler
  /** Whether operators have an app of their own. Defaults to false. */
  readonly separateAdminApp?: boolean
  /** The other processes that serve the same port; undefined = there are none. */
  readonly peers?: Peers | undefined
  /** How long calls wait for the ledger. Defaults to the longer the farther it is away. */
  readonly ledgerTimes?: Pick<LeasePoolOptions, 'stallMs' | 'confirmMs'>
  /** The other regions, and whether they are away; undefined = there are none. */
  readonly regional?: Omit<RegionalStores, 'stores'> | undefined
  /** Whether webhooks may have private addresses, and `http:` ones. Defaults to false. */
  readonly webhookAllowPrivate?: boolean
}
