import { newRequestId } from '../../../lib/core/call/index.ts'
import { accountWallet, type LeaseChange } from '../../../lib/ledger/index.ts'
import { openDatabase, SqlCallStore, SqlKeyDirectory, SqlLedger } from '../../../lib/stores/sql/index.ts'
import { type CallOfLease, entryOf, settlementOf } from './calls.ts'
import type { ScaleCase } from './rounds.ts'
import { accountOf, BUSY_ACCOUNTS, callIdOf, type Filling, secretHashOf } from './rows.ts'

/** A filled database with the stores of a gateway, each with a handle of its own as in the assembled one. */
export interface FilledSide {
  readonly filling: Filling
  readonly directory: SqlKeyDirectory
  readonly log: SqlCallStore
  readonly ledger: SqlLedger
  /** The calls of each batch that is to be settled in this round. */
  batches: CallOfLease[][]
  close(): Promise<void>
}

/** Opens a database that was filled. */
export async function openSide(url: string, filling: Filling): Promise<FilledSide> {
  const db = await openDatabase(url)
  const searches = await openDatabase(url, { readOnly: true, poolSize: 2 })
  const lookUps = await openDatabase(url, { readOnly: true, poolSize: 2 })
  const money = await openDatabase(url, { poolSize: 4 })
  return {
    filling,
    directory: new SqlKeyDirectory(lookUps),
    log: new SqlCallStore(db, { searches }),
    ledger: new SqlLedger(money, { checks: searches }),
    batches: [],
    async close() {
      for (const handle of [money, lookUps, searches, db]) await handle.destroy()
    },
  }
}

const OWNER = 'bench'
/** Leases are named as a process names them. */
const GENERATION = crypto.randomUUID()
let leases = 0
const HELD = 1_000_000_000n
const CHANGES_AT_ONCE = 200
/** So many accounts at most call within one batch: on the small side there are no more. */
const ACCOUNTS_IN_BATCH = 10

/** The queries of admission, settlement and the call log: of keys, accounts and calls picked at random. */
export const DATABASE_CASES: readonly ScaleCase<FilledSide>[] = [
  { name: 'find a key', times: 200, run: findKey },
  { name: 'take a lease', times: 50, run: takeLease },
  settling(1, 50),
  settling(10, 20),
  settling(50, 10),
  // A table's size does not explain this one: twenty wallets are locked on the small side, a hundred on the large.
  settling(50, 10, 50),
  { name: 'log 50 calls that cost nothing', times: 10, run: logCalls },
  { name: 'find a call', times: 200, run: findCall },
  { name: 'list 20 calls of an account', times: 50, run: listCalls },
  { name: 'deposit', times: 50, run: deposit },
]

function settling(
  size: number,
  times: number,
  accounts = Math.min(size, ACCOUNTS_IN_BATCH),
): ScaleCase<FilledSide> {
  return {
    name: size === 1 ? 'settle 1 call' : `settle ${size} calls of ${accounts} accounts`,
    times,
    prepare: (side) => prepareBatches(side, times, size, accounts),
    run: async ({ ledger, batches }, i) => {
      const results = await ledger.settle((batches[i] ?? []).map(settlementOf))
      if (results.some((result) => result !== 'written')) throw new Error('a call was not settled')
    },
  }
}

/** As in a gateway, the leases were taken before. */
async function prepareBatches(
  side: FilledSide,
  times: number,
  size: number,
  accounts: number,
): Promise<void> {
  const { ledger, filling } = side
  const batches = Array.from({ length: times }, () => distinct(accounts, filling.keys).map(taking))
  const takes = batches.flat().map(({ take }) => take)
  for (let at = 0; at < takes.length; at += CHANGES_AT_ONCE) {
    const answers = await ledger.change(OWNER, takes.slice(at, at + CHANGES_AT_ONCE))
    if (answers.some(({ moved }) => moved !== HELD)) throw new Error('a lease was not taken')
  }
  side.batches = batches.map((taken) =>
    Array.from({ length: size }, (_, i) => {
      const { account, take } = taken[i % taken.length] ?? taking(0)
      return { id: newRequestId(), account, lease: take.lease }
    }),
  )
}

function taking(account: number): { readonly account: number; readonly take: LeaseChange } {
  const change = { kind: 'take', need: 1n, want: HELD } as const
  const wallet = accountWallet(accountOf(account))
  return { account, take: { lease: `${GENERATION}.${++leases}`, wallet, seq: 1, change } }
}

async function takeLease({ ledger, filling }: FilledSide): Promise<void> {
  const [answer] = await ledger.change(OWNER, [taking(below(filling.keys)).take])
  if (answer?.moved !== HELD) throw new Error('a lease was not taken')
}

async function findKey({ directory, filling }: FilledSide): Promise<void> {
  if (!(await directory.find(secretHashOf(below(filling.keys))))) throw new Error('a key was not found')
}

async function logCalls({ log, filling }: FilledSide): Promise<void> {
  await log.append(
    Array.from({ length: 50 }, () =>
      entryOf({ id: newRequestId(), account: below(Math.min(filling.keys, ACCOUNTS_IN_BATCH)), lease: '' }),
    ),
  )
}

async function findCall({ log, filling }: FilledSide): Promise<void> {
  if (!(await log.find(callIdOf(below(filling.calls))))) throw new Error('a call was not found')
}

/** Of one of the accounts that have so many. */
async function listCalls({ log, filling }: FilledSide): Promise<void> {
  const account = accountOf(below(Math.min(filling.keys, BUSY_ACCOUNTS)))
  const found = (await log.list({ account, limit: 20 })).entries
  if (found.length !== 20) throw new Error(`${found.length} calls were listed`)
}

async function deposit({ ledger, filling }: FilledSide): Promise<void> {
  const outcome = await ledger.deposit(accountOf(below(filling.keys)), 1_000_000n, newRequestId(), Date.now())
  if (outcome !== 'deposited') throw new Error(`the deposit was "${outcome}"`)
}

function below(most: number): number {
  return Math.floor(Math.random() * most)
}

/** So many different numbers, or all that there are. */
function distinct(count: number, most: number): number[] {
  const picked = new Set<number>()
  while (picked.size < Math.min(count, most)) picked.add(below(most))
  return [...picked]
}
