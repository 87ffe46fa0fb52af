import { newRequestId } from '../../../lib/core/call/index.ts'
import { LeasePool, MemoryLedger } from '../../../lib/ledger/index.ts'
import { Reservation } from '../../../lib/ledger/pool/reservation.ts'
import { KeyCache } from '../../../lib/middleware/authenticate/key-cache.ts'
import { memoryKeyDirectory } from '../../../lib/middleware/authenticate/memory-key-directory.ts'
import { VirtualClock } from '../../ledger/support/virtual-clock.ts'
import type { ScaleCase } from './rounds.ts'
import { accountOf, keyOf, secretHashOf } from './rows.ts'

/** A process that has seen so many keys, all within the seconds for which it remembers them. */
export interface SeenSide {
  readonly keys: number
  readonly secretHashes: readonly string[]
  readonly cache: KeyCache
  readonly pool: LeasePool
  readonly clock: VirtualClock
  /** The next account that never called. */
  fresh: number
}

const AT_ONCE = 100
/** As `authenticate` has it by default. */
const CACHE = { freshMs: 4000, staleKeysMs: 600_000, storeTimeoutMs: 2000, maxEntries: 10_000 }
/** Accounts that call for the first time while measuring. */
const FRESH = 2000
const BURST = 1000
/** The most that a call can cost, and its cost. */
const [MOST, COST] = [161_288n, 12_600n]

export const KEY_CASES: readonly ScaleCase<SeenSide>[] = [
  { name: 'key cache: one of ten keys', times: 20, atOnce: AT_ONCE, run: (side) => lookUp(side, 10) },
  { name: 'key cache: any key', times: 20, atOnce: AT_ONCE, run: (side) => lookUp(side, side.keys) },
  {
    name: 'reserve and settle: one of ten accounts',
    times: 20,
    atOnce: AT_ONCE,
    run: (side) => admit(side, 10),
  },
  {
    name: 'reserve and settle: any account',
    times: 20,
    atOnce: AT_ONCE,
    run: (side) => admit(side, side.keys),
  },
  { name: 'reserve: first call of an account', times: 50, run: (side) => hold(side, side.fresh++) },
]

/** A process that has looked up and admitted each key once. */
export async function seeKeys(keys: number): Promise<SeenSide> {
  const numbers = Array.from({ length: keys + FRESH }, (_, n) => n)
  const secretHashes = numbers.slice(0, keys).map(secretHashOf)
  const directory = memoryKeyDirectory({ accounts: [], keys: [] })
  for (const [n, secretHash] of secretHashes.entries()) directory.set(secretHash, recordOf(n))
  const ledger = new MemoryLedger({
    accounts: numbers.map((n) => ({ id: accountOf(n), balance: '1000' })),
    keys: numbers.map((n) => ({ id: keyOf(n) })),
  })
  // Its time stands still: nothing is forgotten, and what is done once a second is no part of what is measured.
  const clock = new VirtualClock()
  const pool = new LeasePool({ ledger, clock })
  const cache = new KeyCache(directory, CACHE)
  const side = { keys, secretHashes, cache, pool, clock, fresh: keys }
  for (const secretHash of secretHashes) cache.find(secretHash)
  for (let at = 0; at < keys; at += BURST) {
    await Promise.all(numbers.slice(at, Math.min(keys, at + BURST)).map((n) => hold(side, n)))
  }
  return side
}

function lookUp({ cache, secretHashes }: SeenSide, among: number): void {
  for (let i = 0; i < AT_ONCE; i++) {
    if (!cache.find(secretHashes[below(among)] as string)) throw new Error('a key was not found')
  }
}

function admit(side: SeenSide, among: number): Promise<unknown> | undefined {
  const late: Promise<void>[] = []
  for (let i = 0; i < AT_ONCE; i++) {
    const n = below(among)
    const held = side.pool.reserve({ account: accountOf(n), key: keyOf(n), amount: MOST })
    if (held instanceof Promise) late.push(held.then(settle))
    else settle(held)
  }
  return late.length > 0 ? Promise.all(late) : undefined
}

function settle(held: unknown): void {
  if (!(held instanceof Reservation)) throw new Error('a call was refused')
  const outcome = held.settle({
    requestId: newRequestId(),
    amount: COST,
    at: Date.now(),
    basis: () => '{}',
    claim: null,
    entry: null,
  })
  if (outcome !== 'confirmed') throw new Error('a charge was not confirmed at once')
}

async function hold({ pool }: SeenSide, n: number): Promise<void> {
  const held = await pool.reserve({ account: accountOf(n), key: keyOf(n), amount: MOST })
  if (!(held instanceof Reservation)) throw new Error('a call was refused')
  held.release()
}

function recordOf(n: number) {
  const limits = { rpm: null, tpm: null }
  const account = {
    id: accountOf(n),
    limits: { ...limits, concurrency: null },
    regions: null,
    lineRegions: null,
  }
  return {
    id: keyOf(n),
    account,
    enabled: true,
    expiresAt: null,
    allowIps: null,
    allowModels: null,
    limits,
  }
}

function below(most: number): number {
  return Math.floor(Math.random() * most)
}
