import {
  type AccountStore,
  type BudgetStore,
  GatewayError,
  type KeyStore,
  type Logger,
  StoreWatch,
  type TaskStore,
} from 'express-model-gateway'
import { type Database, SqlRegions } from 'express-model-gateway/sql'
import type { DurableStores } from './durable-stores.ts'
import type { RegionSettings } from './region-settings.ts'

/** What a region needs beside its settings. */
export interface RegionalOptions {
  readonly region: string
  readonly settings: RegionSettings
  readonly stores: DurableStores
  readonly db: Database
  readonly logger: Logger
}

/** The stores of a region among others, and what tells of these. */
export interface RegionalStores {
  readonly stores: DurableStores
  readonly regions: SqlRegions
  /** Whether each region is away, for metrics. */
  readonly watches: Readonly<Record<string, StoreWatch>>
}

/** Has stores serve the accounts of other regions too, whose settings are changed at their home only. */
export async function regionalStores(options: RegionalOptions): Promise<RegionalStores> {
  const { region, settings, stores, db, logger } = options
  const databases = new Map([...settings.databases].filter(([name]) => name !== region))
  const watches = new Map(Array.from(databases.keys(), (name) => [name, new StoreWatch()]))
  const { ledger, keys } = stores
  const regions = await SqlRegions.open({
    ...{ region, db, databases, ledger, keys, logger },
    maxAwayMs: settings.maxAwayMs,
    onChange: (name, away) => watches.get(name)?.onChange(away),
  })
  return {
    regions,
    stores: {
      ...stores,
      keys: regions.keys,
      ledger: regions.ledger,
      tasks: tasksSupplied(stores.tasks, regions),
      accounts: accountsAtHome(stores.accounts, regions),
      adminKeys: keysAtHome(stores.adminKeys, regions),
      budgets: budgetsAtHome(stores.budgets, regions),
      async close() {
        await regions.close()
        await stores.close()
      },
    },
    watches: Object.fromEntries(Array.from(watches, ([name, watch]) => [`region_${name}`, watch])),
  }
}

/** Has the money for a video come from the home of its account, if this region has too little of it. */
function tasksSupplied(tasks: TaskStore, { ledger }: Pick<SqlRegions, 'ledger'>): TaskStore {
  const intend: TaskStore['intend'] = async (intent) => {
    const first = await tasks.intend(intent)
    if (first.kind !== 'refused') return first
    await ledger.supply(intent, intent.hold)
    return tasks.intend(intent)
  }
  return new Proxy(tasks, {
    get(target, name) {
      if (name === 'intend') return intend
      const member: unknown = Reflect.get(target, name, target)
      return typeof member === 'function' ? member.bind(target) : member
    },
  })
}

type Homes = Pick<SqlRegions, 'homeOf' | 'regionWith'>

async function refuseElsewhere(regions: Homes, account: string): Promise<void> {
  const home = await regions.homeOf(account)
  if (home !== undefined) throw elsewhere(account, home)
}

function elsewhere(account: string, home: string): GatewayError {
  const message = `The home of the account "${account}" is the region "${home}". Make this change there.`
  return new GatewayError('conflict', { message })
}

function accountsAtHome(accounts: AccountStore, regions: Homes): AccountStore {
  return {
    list: (...asked) => accounts.list(...asked),
    find: (id) => accounts.find(id),
    async create(id, ...settings) {
      const home = await regions.regionWith(id)
      if (home !== undefined) throw elsewhere(id, home)
      return accounts.create(id, ...settings)
    },
    async change(id, ...change) {
      await refuseElsewhere(regions, id)
      return accounts.change(id, ...change)
    },
    async deposit(id, ...deposit) {
      await refuseElsewhere(regions, id)
      return accounts.deposit(id, ...deposit)
    },
  }
}

function keysAtHome(keys: KeyStore, regions: Homes): KeyStore {
  const refuse = async (id: string): Promise<void> => {
    const key = await keys.find(id)
    if (key) await refuseElsewhere(regions, key.account)
  }
  return {
    list: (query) => keys.list(query),
    find: (id) => keys.find(id),
    async create(key, origin) {
      await refuseElsewhere(regions, key.account)
      return keys.create(key, origin)
    },
    async change(id, ...change) {
      await refuse(id)
      return keys.change(id, ...change)
    },
    async rotate(id, ...rotation) {
      await refuse(id)
      return keys.rotate(id, ...rotation)
    },
    async delete(id, origin) {
      await refuse(id)
      return keys.delete(id, origin)
    },
    noteUses: (uses) => keys.noteUses(uses),
  }
}

function budgetsAtHome(budgets: BudgetStore, regions: Homes): BudgetStore {
  const refuse = async (id: string): Promise<void> => {
    const budget = await budgets.find(id)
    if (budget) await refuseElsewhere(regions, budget.scope.account)
  }
  return {
    list: (query) => budgets.list(query),
    find: (id) => budgets.find(id),
    changes: (since) => budgets.changes(since),
    noteRefusal: (...refusal) => budgets.noteRefusal(...refusal),
    async create(budget, origin) {
      await refuseElsewhere(regions, budget.scope.account)
      return budgets.create(budget, origin)
    },
    async change(id, ...change) {
      await refuse(id)
      return budgets.change(id, ...change)
    },
    async delete(id, origin) {
      await refuse(id)
      return budgets.delete(id, origin)
    },
  }
}
