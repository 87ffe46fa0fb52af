import type { MemoryLedger } from '../../../lib/ledger/index.ts'
import { LeasePool, type LeasePoolOptions, type ReserveRefusal } from '../../../lib/ledger/pool/lease-pool.ts'
import { type ChargeOutcome, Reservation, type SettleOutcome } from '../../../lib/ledger/pool/reservation.ts'
import { recordingLogger } from '../../support/app-server.ts'
import { FaultyLedger } from './faulty-ledger.ts'
import { turns, VirtualClock } from './virtual-clock.ts'

let opened = 0

export interface PoolProcessOptions extends Partial<LeasePoolOptions> {
  clock?: VirtualClock
  settlesRecords?: boolean
  gathers?: boolean
}

/** One process with a pool of its own on a ledger that others share. */
export class PoolProcess {
  readonly clock: VirtualClock
  readonly ledger: FaultyLedger
  readonly logger = recordingLogger()
  readonly pool: LeasePool
  readonly owner = `process-${++opened}`

  constructor(
    shared: MemoryLedger,
    { settlesRecords = false, gathers = false, ...options }: PoolProcessOptions = {},
  ) {
    this.clock = options.clock ?? new VirtualClock()
    this.ledger = new FaultyLedger(shared, settlesRecords, gathers)
    this.pool = new LeasePool({
      ledger: this.ledger,
      logger: this.logger,
      owner: this.owner,
      ...options,
      clock: this.clock,
    })
  }

  /** Reserves an amount; returns the answer, or `waiting` where the claim needs more time. */
  async reserve(
    amount: bigint,
    key: string | null = null,
  ): Promise<Reservation | ReserveRefusal | 'waiting'> {
    const answer = this.pool.reserve({ account: 'acme', key, amount })
    if (!(answer instanceof Promise)) return answer
    return Promise.race([answer, turns(20).then(() => 'waiting' as const)])
  }

  /** The same, of which the test knows that it is admitted. */
  async admitted(amount: bigint, key: string | null = null): Promise<Reservation> {
    const held = await this.reserve(amount, key)
    if (held instanceof Reservation) return held
    throw new Error(typeof held === 'string' ? held : held.refused)
  }

  get messages(): string[] {
    return this.logger.lines.map(({ message }) => message)
  }
}

/** The answers to many claims. */
export interface Tally {
  readonly admitted: Reservation[]
  readonly refused: ReserveRefusal[]
}

export async function tally(
  answers: readonly (Reservation | ReserveRefusal | Promise<Reservation | ReserveRefusal>)[],
): Promise<Tally> {
  const all = await Promise.all(answers)
  return {
    admitted: all.filter((answer) => answer instanceof Reservation),
    refused: all.filter((answer) => 'refused' in answer),
  }
}

/** Settles a reservation, and keeps the outcomes that it reports. */
export function settle(
  held: Reservation,
  requestId: string,
  amount: bigint,
): { outcome: SettleOutcome | Promise<SettleOutcome>; resolved: ChargeOutcome[] } {
  const resolved: ChargeOutcome[] = []
  const outcome = held.settle({
    requestId,
    amount,
    at: 0,
    basis: () => '[]',
    claim: null,
    entry: null,
    onResolved: (outcome) => resolved.push(outcome),
  })
  return { outcome, resolved }
}
