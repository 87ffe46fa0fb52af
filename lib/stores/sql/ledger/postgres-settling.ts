import { LARGEST_AMOUNT } from '../../../ledger/amounts.ts'
import type { SettlementResult } from '../../../ledger/index.ts'
import { accountWallet, keyWallet, type WalletId } from '../../../ledger/wallet.ts'
import type { BoundStatement } from '../driver/postgres/postgres-batch.ts'
import { connectionsOf, type PostgresConnections } from '../driver/postgres/postgres-pool.ts'
import type { Database } from '../driver/tables.ts'
import {
  callsOf,
  chargesOf,
  claimsOf,
  type LeaseDraw,
  leasesOf,
  type WalletMove,
  walletsOf,
} from './postgres-settlement-statements.ts'
import type { SettlementRow } from './settlement-cells.ts'

/** Division by zero, and a figure beyond 64 bits. */
const NOT_AS_EXPECTED = new Set<unknown>(['22012', '22003'])

/** Beyond so many characters Postgres would put a statement's rows on the disk before it writes them. */
const MOST_CHARACTERS = 2_000_000

/**
 * Settles on Postgres, in one round trip and with one statement for each table, what nearly every batch is made of:
 * charges that are all new, of wallets that are all there, drawn from leases that hold as much, each with its claim, if
 * any, and log entries of no great length. So all that is to be moved is known beforehand, as sums.
 */
export class PostgresSettling {
  readonly #connections: PostgresConnections

  private constructor(connections: PostgresConnections) {
    this.#connections = connections
  }

  /** Undefined for another database. */
  static on(db: Database): PostgresSettling | undefined {
    const connections = connectionsOf(db)
    return connections && new PostgresSettling(connections)
  }

  /** @returns undefined where a settlement is not an everyday one: nothing has been done then. */
  async settle(settlements: readonly SettlementRow[]): Promise<SettlementResult[] | undefined> {
    const statements = statementsOf(settlements)
    if (!statements) return undefined
    const client = await this.#connections.connect()
    try {
      await client.transact(statements)
    } catch (error) {
      if (NOT_AS_EXPECTED.has((error as { code?: unknown }).code)) return undefined
      throw error
    } finally {
      client.release()
    }
    return settlements.map(() => 'written')
  }
}

function statementsOf(settlements: readonly SettlementRow[]): BoundStatement[] | undefined {
  const ids = new Set<string>()
  const wallets = new Map<WalletId, WalletMove>()
  const leases = new Map<string, LeaseDraw>()
  let characters = 0
  for (const { kind, requestId, account, key, amount, draws, entry } of settlements) {
    if (kind !== 'charge' || ids.has(requestId) || (entry && entry.id !== requestId)) return undefined
    ids.add(requestId)
    if (entry) characters += entry.entry.length + (entry.response_body?.length ?? 0)
    if (characters > MOST_CHARACTERS) return undefined
    moveOf(wallets, accountWallet(account)).cost += amount
    if (key !== null) moveOf(wallets, keyWallet(key)).cost += amount
    for (const { lease, wallet, amount: drawn } of draws) {
      const known = leases.get(lease)
      if (known && known.wallet !== wallet) return undefined
      if (known) known.drawn += drawn
      else leases.set(lease, { wallet, drawn })
      moveOf(wallets, wallet).drawn += drawn
    }
  }
  // Of what comes to more than the database holds, some may stand already.
  for (const { cost, drawn } of wallets.values()) {
    if (cost > LARGEST_AMOUNT || drawn > LARGEST_AMOUNT) return undefined
  }
  return [
    walletsOf(wallets),
    ...claimsOf(settlements),
    chargesOf(settlements),
    ...leasesOf(leases),
    ...callsOf(settlements),
  ]
}

function moveOf(wallets: Map<WalletId, WalletMove>, id: WalletId): WalletMove {
  const known = wallets.get(id)
  if (known) return known
  const move = { cost: 0n, drawn: 0n }
  wallets.set(id, move)
  return move
}
