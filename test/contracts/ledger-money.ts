import assert from 'node:assert/strict'
import {
  accountWallet,
  type Draw,
  keyWallet,
  type LeaseChange,
  type Ledger,
  type LedgerAdmin,
  type Settlement,
  type WalletId,
  type WalletStatement,
} from '../../lib/ledger/index.ts'
import type { CallStore } from '../../lib/middleware/call-log/index.ts'
import type { IdempotencyStore } from '../../lib/middleware/idempotency/index.ts'

/** A ledger to try, further handles of it as other processes would have, and how to be done with it. */
export interface LedgerUnderTest {
  readonly ledgers: readonly [Ledger & LedgerAdmin, ...(Ledger & LedgerAdmin)[]]
  /** Where its settlements complete claims and write log entries. */
  readonly records?: { readonly claims: IdempotencyStore; readonly calls: CallStore }
  close(): Promise<void>
}

let made = 0

/** A name that no other test has. */
export function fresh(what: string): string {
  return `${what}_${++made}`
}

/** A prepaid account with a balance; its id. */
export async function prepaid(ledger: LedgerAdmin, balance: bigint): Promise<string> {
  const account = fresh('acme')
  await ledger.deposit(account, balance, 'opening', 1)
  return account
}

/** A key with a quota, or without one; its id. */
export async function keyOf(ledger: LedgerAdmin, quota?: bigint): Promise<string> {
  const key = fresh('key')
  await ledger.setLimit(keyWallet(key), quota === undefined ? { limited: false } : { limited: true, quota })
  return key
}

export function take(
  lease: string,
  wallet: WalletId,
  need: bigint,
  { want = need, seq = 1 } = {},
): LeaseChange {
  return { lease, wallet, seq, change: { kind: 'take', need, want } }
}

export function give(lease: string, wallet: WalletId, amount: bigint, seq = 2): LeaseChange {
  return { lease, wallet, seq, change: { kind: 'give', amount } }
}

/** Opens a lease that holds an amount; its id. */
export async function leaseOf(ledger: Ledger, wallet: WalletId, amount: bigint): Promise<string> {
  const lease = fresh('lease')
  const [answer] = await ledger.change('p', [take(lease, wallet, amount)])
  assert.equal(answer?.moved, amount)
  return lease
}

export function charge(account: string, amount: bigint, members: Partial<Settlement> = {}): Settlement {
  return {
    kind: 'charge',
    requestId: fresh('req'),
    account,
    key: null,
    amount,
    at: 1_700_000_000_000,
    draws: [],
    basis: '{"items":[]}',
    claim: null,
    entry: null,
    ...members,
  }
}

/** The void of a charge. */
export function voidOf(settlement: Settlement, members: Partial<Settlement> = {}): Settlement {
  return { ...settlement, kind: 'void', amount: 0n, draws: [], basis: null, ...members }
}

export function draw(lease: string, wallet: WalletId, amount: bigint): Draw {
  return { lease, wallet, amount }
}

/** A wallet that must be there. */
export async function statement(ledger: LedgerAdmin, wallet: WalletId): Promise<WalletStatement> {
  const [found] = await ledger.wallets([wallet])
  assert.ok(found, `${wallet} should be there`)
  return found
}

/** The figures of an account's wallet: funds, spent, leased, overrun. */
export async function figures(ledger: LedgerAdmin, account: string): Promise<bigint[]> {
  return figuresOf(ledger, accountWallet(account))
}

export async function figuresOf(ledger: LedgerAdmin, wallet: WalletId): Promise<bigint[]> {
  const { funds, spent, leased, overrun } = await statement(ledger, wallet)
  return [funds, spent, leased, overrun]
}

/** Nothing that the ledger says of itself is wrong. */
export async function assertSound(ledger: LedgerAdmin): Promise<void> {
  assert.deepEqual((await ledger.check()).violations, [])
}
