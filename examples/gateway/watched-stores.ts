import { StoreWatch, type TelemetryOptions, VideoCharges } from 'express-model-gateway'
import type { DurableStores } from './durable-stores.ts'
import type { LimitStores } from './limit-stores.ts'

type Stores = DurableStores & Pick<LimitStores, 'limits' | 'state' | 'lineStates'>

/** The stores of a gateway, and their states for metrics. */
export interface WatchedStores {
  readonly stores: Stores
  readonly states: Pick<Required<TelemetryOptions>['states'], 'stores' | 'videos' | 'database'>
  /** The watches of stores with a guard; the guard reports outages to them. */
  readonly guarded: Readonly<Record<'idempotency' | 'kept' | 'lineSwitches' | 'lineStates', StoreWatch>>
}

/**
 * Watches the stores of a gateway for metrics. The ledger and the call log report their states themselves.
 *
 * @param regions the watches of other regions.
 */
export function watchStores(
  stores: Stores,
  regions: Readonly<Record<string, StoreWatch>> = {},
): WatchedStores {
  const guarded = {
    idempotency: new StoreWatch(),
    kept: new StoreWatch(),
    lineSwitches: new StoreWatch(),
    lineStates: new StoreWatch(),
  }
  const [keys, tasks, tickets, changes] = [
    new StoreWatch(),
    new StoreWatch(),
    new StoreWatch(),
    new StoreWatch(),
  ]
  const videos = new VideoCharges()
  return {
    stores: {
      ...stores,
      keys: keys.watching(stores.keys),
      tasks: tasks.watching(videos.watching(stores.tasks)),
      tickets: tickets.watching(stores.tickets),
      changes: changes.watching(stores.changes),
    },
    states: {
      stores: {
        idempotency: guarded.idempotency,
        kept_things: guarded.kept,
        line_switches: guarded.lineSwitches,
        keys,
        video_tasks: tasks,
        tickets,
        changes,
        ...(stores.retention && { retention: stores.retention }),
        ...regions,
        ...(stores.state && { limits: stores.state }),
        ...(stores.lineStates && { line_states: guarded.lineStates }),
      },
      videos,
      ...(stores.connections && { database: { connections: stores.connections } }),
    },
    guarded,
  }
}
