import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import {
  SqlAccountStore,
  SqlCallStore,
  SqlChangeLog,
  SqlIdempotencyStore,
  SqlKeyDirectory,
  SqlKeyStore,
  SqlLedger,
  SqlLineSwitchStore,
  SqlOperatorStore,
  SqlResourceStore,
  SqlSessionStore,
  SqlTaskStore,
  SqlTicketStore,
  SqlUsageStore,
  SqlWebhookOutbox,
  SqlWebhookStore,
  seedAccountsAndKeys,
} from '../../../../lib/stores/sql/index.ts'
import { accountStoreContract } from '../../../contracts/account-store.ts'
import { callStoreContract } from '../../../contracts/call-store.ts'
import { idempotencyStoreContract } from '../../../contracts/idempotency-store.ts'
import { keyDirectoryContract } from '../../../contracts/key-directory.ts'
import { keyStoreContract } from '../../../contracts/key-store.ts'
import { ledgerContract } from '../../../contracts/ledger.ts'
import { lineSwitchContract } from '../../../contracts/line-switch-store.ts'
import { operatorStoreContract } from '../../../contracts/operator-store.ts'
import { resourceStoreContract } from '../../../contracts/resource-store.ts'
import { sessionStoreContract } from '../../../contracts/session-store.ts'
import { taskStoreContract } from '../../../contracts/task-store.ts'
import { ticketStoreContract } from '../../../contracts/ticket-store.ts'
import { usageContract } from '../../../contracts/usage.ts'
import { webhookAnnouncementsContract } from '../../../contracts/webhook-announcements.ts'
import { webhookDeliveriesContract } from '../../../contracts/webhook-deliveries.ts'
import { webhooksContract } from '../../../contracts/webhooks.ts'
import { cleaningUp } from '../../../support/clean-up.ts'
import { WITHOUT_POSTGRES } from '../../../support/postgres-server.ts'
import { emptiedDatabase } from '../support/emptied-database.ts'
import { notPortable } from '../support/portable-sql.ts'
import { postgresUrl } from '../support/postgres-database.ts'
import { changesIn } from '../support/recorded-changes.ts'
import { mayNotFail, type Sent, statementWire } from '../support/statement-wire.ts'

const NAME = 'a serializable Postgres in which each statement fails at times'

const cleanUp = cleaningUp()
const sent: Sent = new Map()

/** Opened once for all tests: opening takes longer than most of them. */
const emptied = emptiedDatabase(postgresUrl, {
  via: (url) => statementWire(cleanUp, url, sent, { conflicts: true }),
})

async function handles() {
  const { db, other } = await emptied()
  return { one: db, other, close: async () => {} }
}

ledgerContract(
  NAME,
  async () => {
    const { one, other, close } = await handles()
    return {
      ledgers: [new SqlLedger(one), new SqlLedger(other)] as const,
      records: { claims: new SqlIdempotencyStore(other), calls: new SqlCallStore(other) },
      close,
    }
  },
  WITHOUT_POSTGRES,
  // Each statement takes several tries here.
  15,
)

taskStoreContract(
  NAME,
  async () => {
    const { one, other, close } = await handles()
    return {
      stores: [new SqlTaskStore(one), new SqlTaskStore(other)] as const,
      ledger: new SqlLedger(other),
      claims: new SqlIdempotencyStore(one),
      calls: new SqlCallStore(one),
      close,
    }
  },
  WITHOUT_POSTGRES,
)

idempotencyStoreContract(
  NAME,
  async () => {
    const { one, other, close } = await handles()
    return { stores: [new SqlIdempotencyStore(one), new SqlIdempotencyStore(other)] as const, close }
  },
  WITHOUT_POSTGRES,
)

callStoreContract(
  NAME,
  async () => {
    const { one, close } = await handles()
    return { store: new SqlCallStore(one), close }
  },
  WITHOUT_POSTGRES,
)

usageContract(
  NAME,
  async () => {
    const { one, other, close } = await handles()
    return {
      ledgers: [new SqlLedger(one), new SqlLedger(other)] as const,
      calls: new SqlCallStore(other),
      usage: new SqlUsageStore(one),
      close,
    }
  },
  WITHOUT_POSTGRES,
)

keyStoreContract(
  NAME,
  async () => {
    const { db } = await emptied()
    return {
      keys: new SqlKeyStore(db),
      accounts: new SqlAccountStore(db),
      directory: new SqlKeyDirectory(db),
      ledger: new SqlLedger(db),
      changes: new SqlChangeLog(db),
      close: async () => {},
    }
  },
  WITHOUT_POSTGRES,
)

resourceStoreContract(
  NAME,
  async () => {
    const { one, other, close } = await handles()
    return { stores: [new SqlResourceStore(one), new SqlResourceStore(other)] as const, close }
  },
  WITHOUT_POSTGRES,
)

ticketStoreContract(
  NAME,
  async () => {
    const { one, other, ...rest } = await openAdmin()
    return { tickets: new SqlTicketStore(one), other: new SqlTicketStore(other), ...rest }
  },
  WITHOUT_POSTGRES,
)

keyDirectoryContract(
  NAME,
  async (seed) => {
    const { one, close } = await handles()
    await seedAccountsAndKeys(one, seed)
    return { keys: new SqlKeyDirectory(one), close }
  },
  WITHOUT_POSTGRES,
)

accountStoreContract(
  NAME,
  async () => {
    const { db } = await emptied()
    const changes = () => changesIn(db)
    return { accounts: new SqlAccountStore(db), ledger: new SqlLedger(db), changes, close: async () => {} }
  },
  WITHOUT_POSTGRES,
)

async function openAdmin() {
  const opened = await handles()
  return { ...opened, changes: new SqlChangeLog(opened.one) }
}

operatorStoreContract(
  NAME,
  async () => {
    const { one, other, ...rest } = await openAdmin()
    return { stores: [new SqlOperatorStore(one), new SqlOperatorStore(other)] as const, ...rest }
  },
  WITHOUT_POSTGRES,
)

sessionStoreContract(
  NAME,
  async () => {
    const { one, other, ...rest } = await openAdmin()
    return { stores: [new SqlSessionStore(one), new SqlSessionStore(other)] as const, ...rest }
  },
  WITHOUT_POSTGRES,
)

lineSwitchContract(
  NAME,
  async () => {
    const { one, other, ...rest } = await openAdmin()
    const stores = [new SqlLineSwitchStore(one), new SqlLineSwitchStore(other)] as const
    return { stores, ...rest }
  },
  WITHOUT_POSTGRES,
)

for (const contract of [webhooksContract, webhookAnnouncementsContract, webhookDeliveriesContract])
  contract(
    NAME,
    async () => {
      const { one, other, ...rest } = await openAdmin()
      const outboxes = [new SqlWebhookOutbox(one), new SqlWebhookOutbox(other)] as const
      return { store: new SqlWebhookStore(one), outboxes, ...rest }
    },
    WITHOUT_POSTGRES,
  )

describe('the statements that the contracts have sent', { skip: WITHOUT_POSTGRES }, () => {
  it('have each failed with a conflict, where they were sent more than a few times', () => {
    const failed = [...sent.values()].filter(({ failures }) => failures > 0).length
    assert.ok(failed > 150, `${failed} of ${sent.size}`)
    const spared = [...sent].filter(
      ([text, { runs, failures }]) => failures === 0 && runs > 9 && !mayNotFail(text),
    )
    assert.deepEqual(spared, [])
  })

  it('have nothing that distributed databases lack', () => {
    assert.deepEqual(notPortable(sent.keys()), [])
  })
})
