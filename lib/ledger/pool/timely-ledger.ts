import type { LeaseAnswer, LeaseChange, Ledger, OpenLease } from '../ledger.ts'
import type { Clock } from './clock.ts'
import type { LedgerTimes } from './ledger-times.ts'

/** More than a ledger of the toolkit waits for a connection and a statement. */
const SETTLES_MS = 8000

/** Says that a ledger has not answered. What it was asked may have happened, or happen later. */
export class LedgerLate extends Error {
  override readonly name = 'LedgerLate'
}

/** The operations that a pool asks of a ledger. Each always settles: one without an answer in time rejects, and may be repeated like any that fails. */
export class TimelyLedger implements Omit<Ledger, 'settle' | 'settlesRecords' | 'flush'> {
  readonly #ledger: Ledger
  readonly #clock: Clock
  readonly #times: Pick<LedgerTimes, 'answered'>

  constructor(ledger: Ledger, clock: Clock, times: Pick<LedgerTimes, 'answered'>) {
    this.#ledger = ledger
    this.#clock = clock
    this.#times = times
  }

  async change(owner: string, changes: readonly LeaseChange[]): Promise<readonly LeaseAnswer[]> {
    const answers = await this.timed(this.#ledger.change(owner, changes))
    if (Array.isArray(answers) && answers.every(isAnswer)) return answers
    throw new TypeError('the ledger answered a change with something else')
  }

  renew(leases: readonly string[], at: number): Promise<ReadonlySet<string>> {
    return this.#inTime(this.#ledger.renew(leases, at))
  }

  leases(): Promise<readonly OpenLease[]> {
    return this.#inTime(this.#ledger.leases())
  }

  watch(watcher: string): Promise<readonly OpenLease[] | undefined> {
    return this.#inTime(this.#ledger.watch?.(watcher) ?? this.#ledger.leases())
  }

  sweep(lease: string, beats: number): Promise<boolean> {
    return this.#inTime(this.#ledger.sweep(lease, beats))
  }

  /** Waits for an answer, such as to settlements, and records how long it took. */
  async timed<T>(answer: Promise<T>): Promise<T> {
    const asked = this.#clock.now()
    const answered = await this.#inTime(answer)
    this.#times.answered(this.#clock.now() - asked)
    return answered
  }

  #inTime<T>(answer: Promise<T>): Promise<T> {
    return new Promise((resolve, reject) => {
      const late = () => reject(new LedgerLate(`the ledger did not answer in ${SETTLES_MS} ms`))
      const onTime = this.#clock.after(SETTLES_MS, late, true)
      Promise.resolve(answer).finally(onTime).then(resolve, reject)
    })
  }
}

function isAnswer({ moved, lost, open }: Partial<LeaseAnswer>): boolean {
  return typeof moved === 'bigint' && typeof lost === 'boolean' && typeof open === 'boolean'
}
