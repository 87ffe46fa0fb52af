import {
  type LeaseAnswer,
  type LeaseChange,
  type Ledger,
  MemoryLedger,
  type MemoryLedgerOptions,
  type OpenLease,
  type Settlement,
  type SettlementResult,
} from '../../../lib/ledger/index.ts'

type Operation = 'change' | 'renew' | 'settle' | 'leases' | 'sweep'
/** An operation `fails`, is done `unheard`, is done when the test lets it through, or is done and then answers `late`. */
export type Fault = 'fails' | 'unheard' | 'waits' | 'late'

/** The way of one process to a ledger, on which a test lets things go wrong. */
export class FaultyLedger implements Ledger {
  readonly settlesRecords: boolean
  readonly gathers: boolean
  readonly #ledger: MemoryLedger
  readonly faults = new Map<Operation, Fault>()
  /** Charges of these requests fail, and what is settled with them; their voids do not. */
  readonly poison = new Set<string>()
  readonly changes: (readonly LeaseChange[])[] = []
  readonly settled: (readonly Settlement[])[] = []
  /** Whether settlements are read when they are written, as a database does that looks again, and not when they are handed over. */
  readsLate = false
  /** Operations asked for that have not answered yet. */
  running = 0
  #waiting: (() => void)[] = []

  constructor(ledger: MemoryLedger, settlesRecords = false, gathers = false) {
    this.#ledger = ledger
    this.gathers = gathers
    this.settlesRecords = settlesRecords
  }

  /** All fail, until {@link mend}. */
  breakDown(fault: Fault = 'fails'): void {
    for (const operation of ['change', 'renew', 'settle', 'leases', 'sweep'] as const)
      this.faults.set(operation, fault)
  }

  mend(): void {
    this.faults.clear()
    this.letThrough()
  }

  /** Lets what waits through, or so many of those that have waited longest. */
  letThrough(many = this.#waiting.length): void {
    for (const go of this.#waiting.splice(0, many)) go()
  }

  change(owner: string, changes: readonly LeaseChange[]): Promise<readonly LeaseAnswer[]> {
    this.changes.push(changes)
    return this.#do('change', () => this.#ledger.change(owner, changes))
  }

  renew(leases: readonly string[], at: number): Promise<ReadonlySet<string>> {
    return this.#do('renew', () => this.#ledger.renew(leases, at))
  }

  settle(settlements: readonly Settlement[]): Promise<readonly SettlementResult[]> {
    const handed = settlements.map(copyOf)
    this.settled.push(handed)
    return this.#do('settle', async () => {
      const read = this.readsLate ? settlements.map(copyOf) : handed
      const isPoison = ({ kind, requestId }: Settlement) => kind !== 'void' && this.poison.has(requestId)
      if (read.some(isPoison)) throw new Error('out of range')
      return this.#ledger.settle(read)
    })
  }

  leases(): Promise<readonly OpenLease[]> {
    return this.#do('leases', () => this.#ledger.leases())
  }

  sweep(lease: string, beats: number): Promise<boolean> {
    return this.#do('sweep', () => this.#ledger.sweep(lease, beats))
  }

  async #do<T>(operation: Operation, run: () => Promise<T>): Promise<T> {
    this.running++
    try {
      const fault = this.faults.get(operation)
      const letThrough = () => new Promise<void>((resolve) => this.#waiting.push(resolve))
      if (fault === 'waits') await letThrough()
      if (fault === 'fails') throw new Error('the ledger is down')
      const answer = await run()
      if (fault === 'late') await letThrough()
      if (fault === 'unheard') throw new Error('the connection was lost')
      return answer
    } finally {
      this.running--
    }
  }
}

/** A settlement as it is when it is handed over, all that belongs to it included. */
export function copyOf(settlement: Settlement): Settlement {
  const { kind, requestId, account, key, amount, at, basis, draws, claim, entry } = settlement
  const { budgets, cost, usage } = settlement
  return {
    ...{ kind, requestId, account, key, amount, at, basis, draws, claim, entry },
    ...(budgets && { budgets }),
    ...(cost !== undefined && { cost }),
    ...(usage !== undefined && { usage }),
  }
}

/** Units as nano-units. */
export function units(count: number): bigint {
  return BigInt(Math.round(count * 1000)) * 1_000_000n
}

/** A ledger with one prepaid account and its keys; a quota of null = none. */
export function ledgerOf(
  balance: string | undefined,
  keys: Record<string, string | null> = {},
): MemoryLedger {
  const options: MemoryLedgerOptions = {
    accounts: [{ id: 'acme', ...(balance !== undefined && { balance }) }],
    keys: Object.entries(keys).map(([id, quota]) => ({ id, ...(quota !== null && { quota }) })),
  }
  return new MemoryLedger(options)
}
