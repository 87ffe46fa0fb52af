import { quietLogger } from '../../../lib/core/call/index.ts'
import type { LeaseAnswer, LeaseChange, WalletState } from '../../../lib/ledger/index.ts'
import type { HeldLease } from '../../../lib/ledger/pool/held-lease.ts'
import { WalletLease } from '../../../lib/ledger/pool/wallet-lease.ts'
import { VirtualClock } from './virtual-clock.ts'

export const LIMITED: WalletState = { limited: true, funds: 1000n, spent: 0n, leased: 0n }
export const UNLIMITED: WalletState = { limited: false, funds: 0n, spent: 0n, leased: 0n }

/** A wallet of a process, and what it asks of those around it. */
export function world() {
  const clock = new VirtualClock()
  const seen = { asked: 0, served: 0 }
  /** The amounts that the waiting calls need. */
  const waiting: bigint[] = []
  const deps = {
    clock,
    logger: quietLogger(),
    figures: { lost: 0, overruns: 0 },
    closing: false,
    leases: 0,
    ask: () => void seen.asked++,
    newLeaseId: () => `lease-${++deps.leases}`,
  }
  const admissions = { amountsFor: () => waiting, serveSoon: () => void seen.served++, serve: () => {} }
  const wallet = new WalletLease('acme', 'account:acme', admissions, deps)
  const answer = (members: Partial<LeaseAnswer> = {}) =>
    wallet.answered({ moved: 0n, lost: false, open: true, state: LIMITED, ...members })
  return {
    clock,
    seen,
    waiting,
    deps,
    wallet,
    answer,
    hold: (amount: bigint) => wallet.hold(amount, clock.now()),
    covers: (amount: bigint) => wallet.covers(amount, clock.now(), clock.wall()),
    /** Returns the change that it asks the ledger for. */
    next: (): LeaseChange['change'] | undefined => wallet.nextChange()?.change,
    /** Takes so much for a call that waits. */
    take(amount: bigint, state = LIMITED): HeldLease {
      waiting.push(amount)
      wallet.nextChange()
      waiting.length = 0
      answer({ moved: amount, state })
      return wallet.lease as HeldLease
    },
    /** Lets seconds pass, each seen. */
    async tick(seconds: number) {
      for (let second = 0; second < seconds; second++) {
        await clock.advance(1000)
        wallet.tick()
      }
    },
  }
}

/** Lets a wallet hold so much, all of it free, with a call of that cost as the last. */
export function opened(free: bigint, lastAmount = 0n, state = LIMITED) {
  const all = world()
  const lease = all.take(free, state)
  if (lastAmount > 0n) all.wallet.release(all.hold(lastAmount), lastAmount)
  all.seen.asked = 0
  all.seen.served = 0
  return { ...all, lease }
}
