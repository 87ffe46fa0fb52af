import { z } from 'zod'
import { formatAmount } from '../../core/catalog/index.ts'
import {
  type AnswerOf,
  accountPageQuery,
  amount,
  answersWith,
  endpointFor,
  isoTime,
  listOf,
  listPage,
  pageById,
  time,
} from '../../core/json-api/index.ts'
import type { LedgerCheck, RestoredLedger, WalletId } from '../../ledger/index.ts'

/** The sums of a wallet, in nano-units. */
export interface WalletFigures {
  /** `account:<id>`, `key:<id>` or `budget:<id>:<start>` */
  readonly wallet: string
  /** The sum of deposits and adjustments; for a key, its quota. */
  readonly funds: bigint
  readonly spent: bigint
  /** Held by open leases of all processes and by video tasks that have not ended. */
  readonly leased: bigint
}

/** A lease of a process on a wallet. */
export interface LeaseFigures {
  readonly id: string
  /** `account:<id>`, `key:<id>` or `budget:<id>:<start>` */
  readonly wallet: string
  /** The process that holds the lease. */
  readonly owner: string
  /** In nano-units. */
  readonly held: bigint
  /** When it was renewed last, in milliseconds since the epoch by the clock of its process. */
  readonly renewedAt: number
}

/** The operations of a ledger that the admin API needs. `MemoryLedger` and `SqlLedger` have them. */
export interface LedgerView {
  /** Returns wallets. An unknown one is left out. */
  wallets(ids: readonly WalletId[]): Promise<readonly WalletFigures[]>
  /** Returns all open leases. */
  leases(): Promise<readonly LeaseFigures[]>
  /** Recomputes the ledger from its rows, all as of one moment. */
  check(): Promise<LedgerCheck>
}

/** Returns the wallets of accounts or keys, by their ids. */
export async function walletsOf(
  ledger: LedgerView,
  kind: 'account' | 'key',
  listed: readonly { readonly id: string }[],
): Promise<ReadonlyMap<string, WalletFigures>> {
  if (listed.length === 0) return new Map()
  const wallets = await ledger.wallets(listed.map(({ id }) => `${kind}:${id}` as const))
  return new Map(wallets.map((figures) => [figures.wallet.slice(kind.length + 1), figures]))
}

const lease = z.strictObject({
  id: z.string(),
  object: z.literal('lease'),
  wallet: z.string(),
  owner: z.string(),
  held: amount,
  renewed_at: time,
})
export type LeaseAnswer = AnswerOf<typeof lease>

const ledgerCheck = z.strictObject({
  object: z.literal('ledger_check'),
  violations: z.array(z.string()),
  accounts: z.int(),
  charges: z.int(),
  deposited: amount,
  spent: amount,
  leased: amount,
  restored: z
    .strictObject({
      at: time,
      newest_call_at: time.nullable(),
      charges_written_again: z.int(),
      amount_written_again: amount,
      unknown_keys: z.array(z.string()),
    })
    .optional(),
})
export type LedgerCheckAnswer = AnswerOf<typeof ledgerCheck>

interface LedgerParts extends Pick<LedgerView, 'leases'> {
  /** Checks the ledger; requests at the same time share one check. */
  readonly check: LedgerView['check']
}

const endpoint = endpointFor<LedgerParts>()

export const LEDGER_ENDPOINTS = [
  endpoint({
    id: 'listLeases',
    method: 'get',
    path: '/leases',
    role: 'viewer',
    summary: 'The open leases of all processes',
    query: accountPageQuery,
    answers: answersWith('LeaseList', listOf(lease)),
    async handle({ query: { limit, cursor, account } }, ledger) {
      const all = await ledger.leases()
      const found = account === undefined ? all : all.filter(({ wallet }) => wallet === `account:${account}`)
      return listPage(pageById(found, limit + 1, cursor), limit, describeLease)
    },
  }),
  endpoint({
    id: 'checkLedger',
    method: 'get',
    path: '/ledger/check',
    // It reads every charge, for minutes.
    role: 'finance',
    summary: 'The rules of the ledger, recomputed',
    answers: answersWith('LedgerCheck', ledgerCheck),
    async handle(_request, ledger) {
      const { violations, accounts, charges, deposited, spent, leased, restored } = await ledger.check()
      return {
        object: 'ledger_check' as const,
        violations,
        accounts,
        charges,
        deposited: formatAmount(deposited),
        spent: formatAmount(spent),
        leased: formatAmount(leased),
        ...(restored && { restored: describeRestored(restored) }),
      }
    },
  }),
]

function describeRestored(restored: RestoredLedger): NonNullable<LedgerCheckAnswer['restored']> {
  const { at, newestCallAt, chargesWrittenAgain, amountWrittenAgain, unknownKeys } = restored
  return {
    at: isoTime(at),
    newest_call_at: newestCallAt === null ? null : isoTime(newestCallAt),
    charges_written_again: chargesWrittenAgain,
    amount_written_again: formatAmount(amountWrittenAgain),
    unknown_keys: [...unknownKeys],
  }
}

function describeLease({ id, wallet, owner, held, renewedAt }: LeaseFigures): LeaseAnswer {
  return {
    id,
    object: 'lease',
    wallet,
    owner,
    held: formatAmount(held),
    renewed_at: isoTime(renewedAt),
  }
}
