import {
  type Logger,
  MemoryAccountStore,
  MemoryBudgetStore,
  MemoryCallStore,
  MemoryChangeLog,
  MemoryIdempotencyStore,
  MemoryKeptStore,
  MemoryKeyStore,
  MemoryLedger,
  MemoryLineSwitchStore,
  MemoryOperatorStore,
  MemorySessionStore,
  MemoryTaskStore,
  MemoryTicketStore,
  memoryKeyDirectory,
} from 'express-model-gateway'
import type { GatewayConfig } from 'express-model-gateway/config'
import { MemoryWebhooks } from 'express-model-gateway/webhooks'
import type { DurableStores } from './durable-stores.ts'

/** Returns stores that last as long as this process. */
export function memoryStores(config: GatewayConfig, logger: Logger): DurableStores {
  const nothing = async (): Promise<void> => {}
  const keys = memoryKeyDirectory(config)
  const ledger = new MemoryLedger(config)
  const calls = new MemoryCallStore({ usage: ledger.usage })
  const claims = new MemoryIdempotencyStore()
  const changes = new MemoryChangeLog()
  const added = new Map<string, ReturnType<typeof seedsOf>[number]>()
  const add = (given: GatewayConfig): void => {
    for (const seed of seedsOf(given)) added.set(`${seed.kind}:${seed.id}`, seed)
  }
  add(config)
  const webhooks = new MemoryWebhooks({ changes })
  const accounts = new MemoryAccountStore({ ledger, keys, accounts: config.accounts, changes })
  const adminKeys = new MemoryKeyStore({ ledger, directory: keys, accounts, keys: config.keys, changes })
  return {
    keys,
    kept: new MemoryKeptStore(),
    calls,
    claims,
    ledger,
    usage: ledger.usage,
    tasks: new MemoryTaskStore({ money: ledger.holds, claims, calls, changes }),
    tickets: new MemoryTicketStore({ changes, outbox: webhooks }),
    accounts,
    adminKeys,
    budgets: new MemoryBudgetStore({ ledger, accounts, keys: adminKeys, changes, outbox: webhooks }),
    lineSwitches: new MemoryLineSwitchStore({ changes }),
    operators: new MemoryOperatorStore({ changes }),
    sessions: new MemorySessionStore({ changes }),
    seeds: { list: async () => [...added.values()] },
    webhooks,
    outbox: webhooks,
    changes,
    settledByLedger: false,
    ping: nothing,
    write: nothing,
    async seed(next) {
      // Where the config rules, it adds what is new.
      if (next.authority === 'config') add(next)
      else warnOfUnseeded(config, next, logger)
    },
    close: nothing,
  }
}

function seedsOf({ accounts, keys }: GatewayConfig) {
  return [
    ...accounts.map(({ id }) => ({ kind: 'account' as const, id })),
    ...keys.map(({ id }) => ({ kind: 'key' as const, id })),
  ]
}

/** The memory stores know what they were made with, and what the admin API added. */
function warnOfUnseeded(started: GatewayConfig, next: GatewayConfig, logger: Logger): void {
  const known = new Set([...started.accounts, ...started.keys].map(({ id }) => id))
  const left = [...next.accounts, ...next.keys].map(({ id }) => id).filter((id) => !known.has(id))
  if (left.length > 0)
    logger.warn({ left }, 'accounts and keys added to the config need a restart with "memory:"')
}
