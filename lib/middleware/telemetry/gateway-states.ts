import type { Attributes, Meter, Observable } from '@opentelemetry/api'
import type { Catalog, Line } from '../../core/catalog/index.ts'
import { heldBodyBytes } from '../../core/memory/index.ts'
import type { ConnectionFigures } from '../../core/store-guard/index.ts'
import type { LeasePoolStats } from '../../ledger/pool/lease-pool.ts'
import type { LineReading } from '../../routing/lines/line-status.ts'
import { ATTRIBUTE } from './attributes.ts'
import type { VideoCharges } from './video-charges.ts'

/** Whether a store is away, and how often it has gone away. */
export interface StoreReading {
  readonly away: boolean
  readonly outages: number
}

/** The figures of a `LeasePool` that metrics report. */
export type PoolFigures = Omit<LeasePoolStats, 'wallets'>

/** The figures of a `WebhookSender`. */
export interface WebhookFigures {
  /** Attempts that succeeded, that are made again, that are not, and deliveries that were dropped. */
  readonly outcomes: Readonly<Record<'delivered' | 'failed' | 'given_up' | 'dropped', number>>
  /** How long the oldest event has waited for a receiver. */
  readonly waitingMs: number
}

/** The objects whose states are read when metrics are collected. Each member is optional. */
export interface GatewayStates {
  /** The states of the catalogue's lines: a `LineRegistry`. */
  readonly lines?: { reading(line: Line): LineReading }
  /** Leases and settlements: a `LeasePool`. Its ledger is reported as the store `ledger`. */
  readonly pool?: { readonly away: boolean; readonly stats: PoolFigures }
  /** The queue of the call log: a `CallLogWriter`. */
  readonly callLog?: { readonly queued: number; readonly queuedBytes: number; readonly dropped: number }
  /** The connections to the database, by the name of their pool. */
  readonly database?: { connections(): Readonly<Record<string, ConnectionFigures>> }
  /** The access to the admin API: the result of `adminAccess`. */
  readonly admin?: { readonly wrongTokens: number }
  /** Deliveries to webhooks: a `WebhookSender`. */
  readonly webhooks?: { readonly stats: WebhookFigures }
  /** The calls that budgets have refused, by what the budgets are of: a `Budgets`. */
  readonly budgets?: { readonly refusals: Readonly<Record<string, number>> }
  /** Whether the process is ready for requests. */
  readonly readiness?: { ready(): Promise<boolean> }
  /** Stores by the name to report: a `RedisLimitStore` or a `StoreWatch`. */
  readonly stores?: Readonly<Record<string, StoreReading>>
  /** The charges of videos, which are made after their calls have ended. */
  readonly videos?: VideoCharges
}

const AVAILABILITIES = ['up', 'down', 'unknown'] as const
const CIRCUIT_STATES = ['closed', 'open', 'half_open'] as const

type Observe = (instrument: Observable, value: number, attributes?: Attributes) => void

/** Reports states on a meter. They are read only when metrics are collected. */
export function observeStates(meter: Meter, states: GatewayStates, catalog: () => Catalog | undefined): void {
  const { lines, pool, callLog, admin, database, stores = {} } = states
  const { webhooks, budgets, readiness } = states
  if (lines) observeLines(meter, lines, catalog)
  if (callLog) observeCallLog(meter, callLog)
  if (admin) observeAdmin(meter, admin)
  if (database) observeDatabase(meter, database)
  if (webhooks) observeWebhooks(meter, webhooks)
  if (budgets) observeBudgets(meter, budgets)
  if (readiness) observeReadiness(meter, readiness)
  observeBodies(meter)
  if (pool) observePool(meter, pool)
  const all = Object.entries(stores)
  if (pool) all.push(['ledger', ledgerOf(pool)])
  if (all.length > 0) observeStores(meter, all)
}

function observeLines(
  meter: Meter,
  lines: Required<GatewayStates>['lines'],
  catalog: () => Catalog | undefined,
): void {
  const { gauge, counter, level, onCollect } = instruments(meter)
  const available = gauge('line.availability', '1', '1 for the current availability of the line, else 0')
  const circuit = gauge('line.circuit.state', '1', '1 for the current circuit state of the line, else 0')
  const changes = counter('line.circuit.changes', '{change}', 'Circuit transitions, by new state')
  const inFlight = level('line.in_flight', '{attempt}', 'Attempts that run')
  const connections = level('line.connections', '{connection}', 'Open connections to the line')
  onCollect([available, circuit, changes, inFlight, connections], (observe) => {
    for (const line of catalog()?.lines ?? []) {
      const reading = lines.reading(line)
      observe(inFlight, reading.inFlight, { [ATTRIBUTE.line]: line.id })
      observe(connections, reading.connections, { [ATTRIBUTE.line]: line.id })
      for (const availability of AVAILABILITIES)
        observe(available, reading.availability === availability ? 1 : 0, {
          [ATTRIBUTE.line]: line.id,
          [ATTRIBUTE.availability]: availability,
        })
      for (const state of CIRCUIT_STATES) {
        const attributes: Attributes = { [ATTRIBUTE.line]: line.id, [ATTRIBUTE.circuitState]: state }
        observe(circuit, reading.circuit === state ? 1 : 0, attributes)
        observe(changes, reading.circuitChanges[state], attributes)
      }
    }
  })
}

function observeAdmin(meter: Meter, admin: Required<GatewayStates>['admin']): void {
  const { counter, onCollect } = instruments(meter)
  const wrong = counter('admin.wrong_tokens', '{request}', 'Requests to the admin API with a wrong token')
  onCollect([wrong], (observe) => observe(wrong, admin.wrongTokens))
}

function observeWebhooks(meter: Meter, webhooks: Required<GatewayStates>['webhooks']): void {
  const { counter, gauge, onCollect } = instruments(meter)
  const deliveries = counter('webhook.deliveries', '{delivery}', 'Attempts to deliver events to webhooks')
  const age = gauge('webhook.age', 's', 'Age of the oldest undelivered event')
  onCollect([deliveries, age], (observe) => {
    const { outcomes, waitingMs } = webhooks.stats
    observe(age, waitingMs / 1000)
    for (const [outcome, count] of Object.entries(outcomes))
      observe(deliveries, count, { [ATTRIBUTE.outcome]: outcome })
  })
}

function observeBudgets(meter: Meter, budgets: Required<GatewayStates>['budgets']): void {
  const { counter, onCollect } = instruments(meter)
  const refusals = counter('budget.refusals', '{call}', 'Calls that a budget refused')
  onCollect([refusals], (observe) => {
    for (const [scope, count] of Object.entries(budgets.refusals))
      observe(refusals, count, { [ATTRIBUTE.budgetScope]: scope })
  })
}

function observeReadiness(meter: Meter, readiness: Required<GatewayStates>['readiness']): void {
  const { gauge, onCollect } = instruments(meter)
  const ready = gauge('ready', '1', '1 while the process is ready for requests, else 0')
  onCollect([ready], async (observe) => observe(ready, (await readiness.ready()) ? 1 : 0))
}

function observeDatabase(meter: Meter, database: Required<GatewayStates>['database']): void {
  const connections = meter.createObservableUpDownCounter('db.client.connection.count', {
    unit: '{connection}',
    description: 'Connections to the database',
  })
  const pending = meter.createObservableUpDownCounter('db.client.connection.pending_requests', {
    unit: '{request}',
    description: 'Operations that wait for a connection',
  })
  instruments(meter).onCollect([connections, pending], (observe) => {
    for (const [name, { used, idle, waiting }] of Object.entries(database.connections())) {
      const attributes = { [ATTRIBUTE.pool]: name }
      observe(connections, used, { ...attributes, [ATTRIBUTE.connectionState]: 'used' })
      observe(connections, idle, { ...attributes, [ATTRIBUTE.connectionState]: 'idle' })
      observe(pending, waiting, attributes)
    }
  })
}

function observeBodies(meter: Meter): void {
  const { level, onCollect } = instruments(meter)
  const held = level('bodies.held', 'By', 'Memory that unfinished bodies of requests take')
  onCollect([held], (observe) => observe(held, heldBodyBytes()))
}

function observeCallLog(meter: Meter, callLog: Required<GatewayStates>['callLog']): void {
  const { counter, level, onCollect } = instruments(meter)
  const queued = level('call_log.queued', '{entry}', 'Entries that wait to be written')
  const dropped = counter('call_log.dropped', '{entry}', 'Entries that were not written, and will not be')
  const size = level('call_log.size', 'By', 'About the memory that entries take that wait to be written')
  onCollect([queued, size, dropped], (observe) => {
    observe(queued, callLog.queued)
    observe(size, callLog.queuedBytes)
    observe(dropped, callLog.dropped)
  })
}

function observePool(meter: Meter, pool: Required<GatewayStates>['pool']): void {
  const { counter, gauge, level, onCollect } = instruments(meter)
  const age = gauge('settlements.age', 's', 'How long the oldest unconfirmed charge has waited')
  const figures: readonly (readonly [keyof PoolFigures, Observable])[] = [
    ['queued', level('settlements.queued', '{settlement}', 'Charges that the ledger has not confirmed')],
    ['queuedBytes', level('settlements.size', 'By', 'About the memory that unconfirmed charges take')],
    [
      'setAside',
      level('settlements.set_aside', '{settlement}', 'Charges that fail while others are written'),
    ],
    [
      'lockedAccounts',
      level('settlements.held_accounts', '{account}', 'Accounts whose charges wait apart from all others'),
    ],
    ['waiting', level('admissions.waiting', '{call}', 'Calls that wait for money to be held')],
    ['leases', level('leases.open', '{lease}', 'Leases that this process has')],
    ['leasesLost', counter('leases.lost', '{lease}', 'Leases that were swept although this process lives')],
    ['overruns', counter('leases.overruns', '{charge}', 'Charges that drew on a lost lease')],
    ['leasesSwept', counter('leases.swept', '{lease}', 'Leases of others that this process returned')],
  ]
  onCollect([age, ...figures.map(([, instrument]) => instrument)], (observe) => {
    const { stats } = pool
    observe(age, stats.queuedMs / 1000)
    for (const [name, instrument] of figures) observe(instrument, stats[name])
  })
}

function ledgerOf(pool: Required<GatewayStates>['pool']): StoreReading {
  return {
    get away() {
      return pool.away
    },
    get outages() {
      return pool.stats.outages
    },
  }
}

function observeStores(meter: Meter, stores: readonly (readonly [string, StoreReading])[]): void {
  const { gauge, counter, onCollect } = instruments(meter)
  const away = gauge('store.away', '1', '1 while the store is away, else 0')
  const outages = counter('store.outages', '{outage}', 'Store outages')
  onCollect([away, outages], (observe) => {
    for (const [name, store] of stores) {
      const attributes = { [ATTRIBUTE.store]: name }
      observe(away, store.away ? 1 : 0, attributes)
      observe(outages, store.outages, attributes)
    }
  })
}

function instruments(meter: Meter) {
  return {
    gauge: (name: string, unit: string, description: string) =>
      meter.createObservableGauge(`model_gateway.${name}`, { unit, description }),
    counter: (name: string, unit: string, description: string) =>
      meter.createObservableCounter(`model_gateway.${name}`, { unit, description }),
    level: (name: string, unit: string, description: string) =>
      meter.createObservableUpDownCounter(`model_gateway.${name}`, { unit, description }),
    onCollect: (observed: Observable[], read: (observe: Observe) => void | Promise<void>) =>
      meter.addBatchObservableCallback(
        (result) => read((...observation) => result.observe(...observation)),
        observed,
      ),
  }
}
