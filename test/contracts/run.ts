/**
 * Runs the contract of an interface over a store of your own, wherever that is:
 *
 *     npm run contract -- limit-store ../my-app/contract.ts
 *
 * The module's default export opens what is tested; what that has to answer says the contract's own file.
 */

import { resolve } from 'node:path'
import { pathToFileURL } from 'node:url'
import { accountStoreContract } from './account-store.ts'
import { callStoreContract } from './call-store.ts'
import { idempotencyStoreContract } from './idempotency-store.ts'
import { keyDirectoryContract } from './key-directory.ts'
import { keyStoreContract } from './key-store.ts'
import { ledgerContract } from './ledger.ts'
import { limitCounterContract } from './limit-counter.ts'
import { limitWaitContract } from './limit-wait.ts'
import { lineStateContract } from './line-state-store.ts'
import { lineSwitchContract } from './line-switch-store.ts'
import { operatorStoreContract } from './operator-store.ts'
import { resourceStoreContract } from './resource-store.ts'
import { sessionStoreContract } from './session-store.ts'
import { slotStoreContract } from './slot-store.ts'
import { taskStoreContract } from './task-store.ts'
import { ticketStoreContract } from './ticket-store.ts'
import { webhookAnnouncementsContract } from './webhook-announcements.ts'
import { webhooksContract } from './webhooks.ts'

type Contract = (name: string, open: never) => void

const CONTRACTS: Readonly<Record<string, readonly Contract[]>> = {
  'account-store': [accountStoreContract],
  'call-store': [callStoreContract],
  'idempotency-store': [idempotencyStoreContract],
  'key-directory': [keyDirectoryContract],
  'resource-store': [resourceStoreContract],
  'key-store': [keyStoreContract],
  ledger: [ledgerContract],
  'limit-store': [limitCounterContract, slotStoreContract],
  'limit-waits': [limitWaitContract],
  'line-state-store': [lineStateContract],
  'line-switch-store': [lineSwitchContract],
  'operator-store': [operatorStoreContract],
  'session-store': [sessionStoreContract],
  'task-store': [taskStoreContract],
  'ticket-store': [ticketStoreContract],
  webhooks: [webhooksContract, webhookAnnouncementsContract],
}

const [name = '', file] = process.argv.slice(2)
const contracts = Object.hasOwn(CONTRACTS, name) ? CONTRACTS[name] : undefined
if (!contracts || file === undefined) {
  console.error('npm run contract -- <interface> <file whose default export opens a store to try>')
  console.error(`interfaces: ${Object.keys(CONTRACTS).join(', ')}`)
  process.exit(1)
}
const { default: open } = (await import(pathToFileURL(resolve(file)).href)) as { default: never }
for (const contract of contracts) contract(file, open)
