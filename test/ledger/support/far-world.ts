import { LeasePool } from '../../../lib/ledger/index.ts'
import { type ChargeOutcome, Reservation } from '../../../lib/ledger/pool/reservation.ts'
import { accountWallet } from '../../../lib/ledger/wallet.ts'
import { recordingLogger } from '../../support/app-server.ts'
import { FarLedger } from './far-ledger.ts'
import { settle } from './pool-process.ts'
import { VirtualClock } from './virtual-clock.ts'

export const ACCOUNTS = Array.from({ length: 8 }, (_, i) => `account-${i}`)

/** A call and its outcome. */
export interface Called {
  readonly account: string
  /** When it ended, and its charge was handed to the pool. */
  readonly at: number
  readonly reservation: Reservation
  outcome: 'waits' | 'confirmed' | 'fenced' | 'unconfirmed'
  /** How long it waited for that. */
  waitedMs: number
  readonly resolved: ChargeOutcome[]
  revoked: boolean
}

/** A process on a ledger that is far away, and its calls. Each costs 1. */
export class FarWorld {
  readonly clock = new VirtualClock()
  readonly ledger = new FarLedger(ACCOUNTS, this.clock)
  readonly pool = new LeasePool({
    ledger: this.ledger,
    clock: this.clock,
    logger: recordingLogger(),
    confirmMs: 60_000,
  })
  readonly calls: Called[] = []
  /** The accounts whose calls were refused, one entry for each. */
  readonly refused: string[] = []
  #made = 0

  /** Opens the leases of all accounts, and learns how far away the ledger is. */
  async warm(): Promise<void> {
    for (let round = 0; round < 2; round++) {
      for (const account of ACCOUNTS) await this.call(account)
      await this.pass(1500)
    }
    this.calls.length = 0
    this.ledger.mostOfOne = 0
    this.ledger.mostUnderWay = 0
  }

  /** Makes a call that takes no time, if it is admitted. */
  async call(account: string): Promise<void> {
    const answer = this.pool.reserve({ account, key: null, amount: 1n })
    const end = (held: Awaited<typeof answer>) => {
      if (!(held instanceof Reservation)) {
        this.refused.push(account)
        return
      }
      const at = this.clock.now()
      const { outcome, resolved } = settle(held, `req-${++this.#made}`, 1n)
      const called: Called = {
        ...{ account, at, reservation: held, outcome: 'waits', waitedMs: 0 },
        ...{ resolved, revoked: false },
      }
      this.calls.push(called)
      void Promise.resolve(outcome).then((known) => {
        called.outcome = known
        called.waitedMs = this.clock.now() - at
      })
    }
    if (answer instanceof Promise) void answer.then(end)
    else end(answer)
  }

  async pass(ms: number): Promise<void> {
    await this.clock.advance(ms)
  }

  /** Returns the amount that each account has spent. */
  async spent(): Promise<number[]> {
    const wallets = await this.ledger.books.wallets(ACCOUNTS.map(accountWallet))
    return wallets.map(({ spent }) => Number(spent))
  }
}
