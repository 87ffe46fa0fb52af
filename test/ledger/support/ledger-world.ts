import assert from 'node:assert/strict'
import { MemoryLedger } from '../../../lib/ledger/index.ts'
import { type ChargeOutcome, Reservation } from '../../../lib/ledger/pool/reservation.ts'
import { accountWallet, keyWallet, type WalletId } from '../../../lib/ledger/wallet.ts'
import type { Fault } from './faulty-ledger.ts'
import { PoolProcess, settle } from './pool-process.ts'
import { turns } from './virtual-clock.ts'

/** Something that happens to three processes on one ledger. */
export type Step =
  | { op: 'reserve'; at: number; key: string | null; amount: number }
  | { op: 'settle'; which: number; cost: number }
  | { op: 'release' | 'revoke'; which: number }
  | { op: 'advance'; ms: number }
  | { op: 'fault'; at: number; operation: 'change' | 'settle' | 'renew' | 'leases' | 'sweep'; fault: Fault }
  | { op: 'stop'; at: number; ms: number }
  | { op: 'mend' | 'through' | 'crash'; at: number }
  /** The ledger does not take the next charge of the process, or it takes those that it did not. */
  | { op: 'poison' | 'cure'; at: number }
  | { op: 'deposit'; amount: number }

interface Held {
  readonly process: PoolProcess
  readonly reservation: Reservation
  readonly key: string | null
}

interface Charged extends Held {
  readonly cost: bigint
  readonly resolved: ChargeOutcome[]
  revoked: boolean
}

/** Three processes on one ledger, and what must hold of them at any time. */
export class LedgerWorld {
  readonly shared = new MemoryLedger({
    accounts: [{ id: 'acme', balance: '0.0000001' }],
    keys: [{ id: 'one', quota: '0.00000004' }, { id: 'two' }],
  })
  #opened = 0
  readonly #processes = [this.#open(), this.#open(), this.#open()]
  readonly #crashed: PoolProcess[] = []
  #held: Held[] = []
  readonly #charged: Charged[] = []
  #requests = 0
  #deposits = 0

  async take(step: Step): Promise<void> {
    switch (step.op) {
      case 'reserve': {
        const process = this.#process(step.at)
        const claim = { account: 'acme', key: step.key, amount: BigInt(step.amount) }
        const answer = process.pool.reserve(claim)
        const note = (held: unknown) => {
          if (held instanceof Reservation && !this.#crashed.includes(process))
            this.#held.push({ process, reservation: held, key: step.key })
        }
        if (answer instanceof Promise) void answer.then(note)
        else note(answer)
        break
      }
      case 'settle':
        this.#settle(step.which, BigInt(step.cost))
        break
      case 'release': {
        const held = this.#pick(step.which)
        // The second time is one too many.
        for (let times = 0; times < 2; times++) held?.reservation.release()
        break
      }
      case 'revoke': {
        const charged = this.#charged.at(-1 - (step.which % 3))
        if (!charged || this.#crashed.includes(charged.process)) break
        charged.revoked = true
        charged.reservation.revoke(null)
        break
      }
      case 'advance':
        await this.#advance(step.ms)
        break
      case 'stop': {
        const { clock } = this.#process(step.at)
        await this.#advance(step.ms, step.at)
        clock.stopFor(step.ms)
        break
      }
      case 'fault':
        this.#process(step.at).ledger.faults.set(step.operation, step.fault)
        break
      case 'mend':
        this.#process(step.at).ledger.mend()
        break
      case 'through':
        this.#process(step.at).ledger.letThrough(1)
        break
      case 'poison':
        for (let next = 1; next <= 3; next++)
          this.#process(step.at).ledger.poison.add(`req-${this.#requests + next}`)
        break
      case 'cure':
        this.#process(step.at).ledger.poison.clear()
        break
      case 'crash':
        this.#crash(step.at)
        break
      case 'deposit':
        await this.shared.deposit('acme', BigInt(step.amount), `deposit-${++this.#deposits}`)
    }
    await turns(3)
  }

  /** Asserts what holds at any time. */
  async check(): Promise<void> {
    assert.deepEqual((await this.shared.check()).violations, [])
    for (const wallet of [accountWallet('acme'), keyWallet('one')]) {
      const [state] = await this.shared.wallets([wallet])
      assert.ok(state)
      const { funds, spent, leased, overrun } = state
      const below = -(funds - spent - leased)
      const beyond = this.#of(wallet, this.#charged).map(({ cost, reservation }) => cost - reservation.amount)
      const allowed = overrun + beyond.reduce((sum, each) => sum + (each > 0n ? each : 0n), 0n)
      assert.ok(
        below <= allowed,
        `${wallet} is ${below} below zero, and ${allowed} at most were underestimated`,
      )
    }
    await this.#checkHeld()
    await this.#checkKnown()
  }

  /** Asserts what holds when all have come to rest. */
  async end(): Promise<void> {
    for (const { ledger } of this.#processes) {
      ledger.mend()
      ledger.poison.clear()
    }
    await turns(10)
    this.#releaseAll()
    await this.#advance(75_000)
    this.#releaseAll()
    await this.check()
    const known = this.#charged.filter(({ process }) => !this.#crashed.includes(process))
    for (const { resolved, revoked } of known) {
      assert.ok(resolved.length === 1 || (revoked && resolved.length === 2), `resolved: ${resolved}`)
      assert.equal(resolved.at(-1), revoked ? 'voided' : 'confirmed')
    }
    const unknown = this.#charged.filter(({ process }) => this.#crashed.includes(process))
    for (const wallet of [accountWallet('acme'), keyWallet('one'), keyWallet('two')]) {
      const [state] = await this.shared.wallets([wallet])
      const least = sum(this.#of(wallet, known).filter(({ revoked }) => !revoked))
      const most = least + sum(this.#of(wallet, unknown))
      const spent = state?.spent ?? 0n
      assert.ok(spent >= least && spent <= most, `${wallet}: ${spent} spent, not ${least} to ${most}`)
    }
    const closed = Promise.all(this.#processes.map(({ pool }) => pool.close()))
    await this.#advance(2000)
    await closed
    const { leased, violations } = await this.shared.check()
    assert.deepEqual([leased, violations], [0n, []])
    assert.deepEqual(await this.shared.leases(), [])
  }

  /** Nobody is admitted without money: what a process holds for its calls, its leases have. */
  async #checkHeld(): Promise<void> {
    const leases = await this.shared.leases()
    for (const process of this.#processes) {
      if (process.pool.stats.leasesLost > 0) continue
      const own = this.#held.filter((held) => held.process === process)
      for (const wallet of [accountWallet('acme'), keyWallet('one')]) {
        const held = this.#of(wallet, own).reduce((sum, { reservation }) => sum + reservation.amount, 0n)
        const mine = leases.filter((lease) => lease.owner === process.owner && lease.wallet === wallet)
        const has = mine.reduce((sum, lease) => sum + lease.held, 0n)
        // While a process was stopped its leases may have been swept, of which it does not know yet.
        if (mine.length > 0) assert.ok(held <= has, `${wallet}: calls hold ${held}, the lease ${has}`)
      }
    }
  }

  /** No lease is open that its process has forgotten: nobody would renew it or give it back. */
  async #checkKnown(): Promise<void> {
    const leases = await this.shared.leases()
    for (const { pool, ledger, owner } of this.#processes) {
      if (pool.stats.leasesLost > 0 || ledger.running > 0) continue
      const open = leases.filter((lease) => lease.owner === owner)
      assert.ok(open.length <= pool.stats.leases, `${open.length} open, ${pool.stats.leases} known`)
    }
  }

  #settle(which: number, cost: bigint): void {
    const held = this.#pick(which)
    if (!held) return
    const { resolved } = settle(held.reservation, `req-${++this.#requests}`, cost)
    held.reservation.release()
    this.#charged.push({ ...held, cost, resolved, revoked: false })
  }

  #releaseAll(): void {
    for (const { reservation } of this.#held.splice(0)) reservation.release()
  }

  /** Takes one of the calls that run. */
  #pick(which: number): Held | undefined {
    return this.#held.splice(which % Math.max(1, this.#held.length), 1)[0]
  }

  #of<H extends Held>(wallet: WalletId, held: readonly H[]): readonly H[] {
    if (wallet === accountWallet('acme')) return held
    return held.filter(({ key }) => key !== null && keyWallet(key) === wallet)
  }

  #crash(at: number): void {
    const process = this.#process(at)
    process.ledger.breakDown('waits')
    this.#crashed.push(process)
    this.#held = this.#held.filter((held) => held.process !== process)
    this.#processes[at] = this.#open()
  }

  async #advance(ms: number, except?: number): Promise<void> {
    for (let left = ms; left > 0; left -= 1000) {
      for (const [i, { clock }] of this.#processes.entries()) {
        if (i !== except) await clock.advance(Math.min(1000, left))
      }
    }
  }

  #process(at: number): PoolProcess {
    const process = this.#processes[at]
    assert.ok(process)
    return process
  }

  #open(): PoolProcess {
    const process = new PoolProcess(this.shared, { gathers: ++this.#opened % 2 === 0 })
    process.ledger.readsLate = this.#opened % 3 === 0
    return process
  }
}

function sum(charged: readonly Charged[]): bigint {
  return charged.reduce((sum, { cost }) => sum + cost, 0n)
}
