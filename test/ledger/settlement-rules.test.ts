import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import type { CallLogEntry } from '../../lib/core/call/index.ts'
import type { Settlement } from '../../lib/ledger/index.ts'
import {
  type SettlementRecords,
  type SpentFigures,
  type Standing,
  settle,
} from '../../lib/ledger/settlement.ts'
import { charge, draw, voidOf } from '../contracts/ledger-money.ts'

const ACME = 'account:acme'
const KEY = 'key:k'
const CLAIM = { id: 'record', owner: 'req', keepUntil: 5 }
const ENTRY = { id: 'req', status: 200 } as unknown as CallLogEntry

/** Records that note what is done to them. */
function records({ isOwned = true } = {}) {
  const figures = new Map<string, SpentFigures>()
  const wallet = (id: string) => {
    const found = figures.get(id) ?? { spent: 0n, leased: 0n, overrun: 0n }
    figures.set(id, found)
    return found
  }
  const standing = new Map<string, Standing>()
  const leases = new Map<string, { wallet: typeof ACME; held: bigint }>()
  const done: unknown[][] = []
  const all: SettlementRecords = {
    wallets: {
      account: (id) => wallet(`account:${id}`),
      key: (id) => wallet(`key:${id}`),
      budget: wallet,
      get: (id) => figures.get(id),
    },
    charges: {
      find: (id) => standing.get(id),
      add: ({ requestId, account, key, amount }) => {
        done.push(['charge', requestId])
        standing.set(requestId, { account, key, amount, voided: false })
      },
      void: ({ requestId }, before) => {
        done.push(['void', requestId, before?.amount])
        standing.set(requestId, { ...(before ?? { account: null, key: null, amount: 0n }), voided: true })
      },
    },
    lease: (id) => leases.get(id),
    completeClaim: (claim) => {
      done.push(['complete', claim])
      return isOwned
    },
    freeClaim: (claim) => void done.push(['free', claim]),
    log: (entry) => void done.push(['log', entry]),
  }
  return {
    done,
    leases,
    standing,
    wallet,
    settle: (settlement: Settlement) => settle(settlement, all),
    spent: () => [figures.get(ACME)?.spent, figures.get(KEY)?.spent],
  }
}

const ONCE = charge('acme', 30n, { requestId: 'req', key: 'k', claim: CLAIM, entry: ENTRY })
const UNDONE = voidOf(ONCE, { claim: CLAIM, entry: ENTRY })

describe('a charge', () => {
  it('is spent by account and key, with its claim completed and its entry written, once', () => {
    const { settle, spent, done } = records()
    assert.equal(settle(ONCE), 'written')
    assert.deepEqual(spent(), [30n, 30n])
    assert.deepEqual(done, [
      ['complete', CLAIM],
      ['charge', 'req'],
      ['log', ENTRY],
    ])
    assert.equal(settle({ ...ONCE, amount: 99n }), 'known')
    assert.deepEqual(spent(), [30n, 30n])
    assert.deepEqual(done.slice(3), [
      ['complete', CLAIM],
      ['log', ENTRY],
    ])
  })

  it('of nobody’s key, without claim and entry, is spent by the account alone', () => {
    const { settle, spent, done } = records({ isOwned: false })
    assert.equal(settle({ ...ONCE, key: null, claim: null, entry: null }), 'written')
    assert.deepEqual([spent(), done], [[30n, undefined], [['charge', 'req']]])
    assert.equal(settle({ ...ONCE, key: null, claim: null, entry: null }), 'known')
    assert.deepEqual(done, [['charge', 'req']])
  })

  it('whose claim is another’s is fenced: nothing is spent, drawn or written', () => {
    const { settle, wallet, leases, done } = records({ isOwned: false })
    leases.set('l', { wallet: ACME, held: 50n })
    wallet(ACME).leased = 50n
    assert.equal(settle({ ...ONCE, draws: [draw('l', ACME, 20n)] }), 'fenced')
    assert.deepEqual([wallet(ACME), leases.get('l')?.held], [{ spent: 0n, leased: 50n, overrun: 0n }, 50n])
    assert.deepEqual(done, [['complete', CLAIM]])
  })

  it('whose claim is another’s is known where it stands already, and fenced where only a void does', () => {
    const { settle, standing, spent, done } = records({ isOwned: false })
    standing.set('req', { account: 'acme', key: 'k', amount: 30n, voided: false })
    assert.equal(settle(ONCE), 'known')
    standing.set('req', { account: null, key: null, amount: 0n, voided: true })
    assert.equal(settle(ONCE), 'fenced')
    assert.deepEqual(spent(), [undefined, undefined])
    assert.deepEqual(done, [
      ['complete', CLAIM],
      ['log', ENTRY],
      ['complete', CLAIM],
    ])
  })

  it('that comes after its void is not spent, and frees its claim; the entry of the void stays', () => {
    const { settle, spent, done } = records()
    settle({ ...UNDONE, claim: null, entry: null })
    assert.equal(settle(ONCE), 'known')
    assert.equal(settle({ ...ONCE, claim: null }), 'known')
    assert.deepEqual(spent(), [undefined, undefined])
    assert.deepEqual(done, [
      ['void', 'req', undefined],
      ['complete', CLAIM],
      ['free', CLAIM],
    ])
  })

  it('draws what its leases hold; the rest is an overrun of the wallet', () => {
    const { settle, wallet, leases } = records()
    const drawn = (held: bigint | undefined, amount: bigint) => {
      Object.assign(wallet(ACME), { spent: 0n, leased: 100n, overrun: 0n })
      leases.clear()
      if (held !== undefined) leases.set('l', { wallet: ACME, held })
      settle(charge('acme', 1n, { draws: [draw('l', ACME, amount)] }))
      const { leased, overrun } = wallet(ACME)
      return [leases.get('l')?.held, leased, overrun]
    }
    assert.deepEqual(drawn(50n, 20n), [30n, 80n, 0n])
    assert.deepEqual(drawn(20n, 20n), [0n, 80n, 0n])
    assert.deepEqual(drawn(1n, 20n), [0n, 99n, 19n])
    assert.deepEqual(drawn(0n, 20n), [0n, 100n, 20n])
    assert.deepEqual(drawn(-5n, 20n), [-5n, 100n, 20n])
    assert.deepEqual(drawn(undefined, 20n), [undefined, 100n, 20n])
  })

  it('draws nothing on the lease of another wallet, nor for a wallet that is not there', () => {
    const { settle, wallet, leases } = records()
    wallet(KEY)
    leases.set('l', { wallet: ACME, held: 50n })
    settle(charge('acme', 1n, { draws: [draw('l', KEY, 20n), draw('l', 'account:nobody', 20n)] }))
    assert.deepEqual([leases.get('l')?.held, wallet(KEY).overrun, wallet(KEY).leased], [50n, 20n, 0n])
  })
})

describe('a void', () => {
  it('gives back what was charged, to whom it was charged, once', () => {
    const { settle, spent, wallet, done } = records()
    settle({ ...ONCE, claim: null, entry: null })
    assert.equal(settle({ ...UNDONE, account: 'globex', key: null, amount: 7n }), 'written')
    assert.deepEqual([spent(), wallet('account:globex').spent], [[0n, 0n], 0n])
    assert.deepEqual(done.slice(1), [
      ['void', 'req', 30n],
      ['log', ENTRY],
      ['free', CLAIM],
    ])
    assert.equal(settle(UNDONE), 'known')
    assert.deepEqual(spent(), [0n, 0n])
    assert.deepEqual(done.slice(4), [
      ['log', ENTRY],
      ['free', CLAIM],
    ])
  })

  it('of an account’s charge without a key gives back to the account alone', () => {
    const { settle, spent } = records()
    settle({ ...ONCE, key: null })
    settle({ ...UNDONE, claim: null, entry: null })
    assert.deepEqual(spent(), [0n, undefined])
  })

  it('that comes first gives nothing back, and stays the only one', () => {
    const { settle, spent, done } = records()
    const bare = { ...UNDONE, claim: null, entry: null }
    assert.deepEqual([settle(bare), settle(bare)], ['written', 'known'])
    assert.deepEqual([spent(), done], [[undefined, undefined], [['void', 'req', undefined]]])
  })
})

describe('a charge that is revoked before it is known to be stored', () => {
  const REVOKED: Settlement = { ...ONCE, kind: 'revoked', draws: [draw('l', ACME, 20n)] }

  it('draws, and is undone at once, with its claim freed; again, it changes nothing', () => {
    const { settle, spent, done, wallet, leases } = records()
    leases.set('l', { wallet: ACME, held: 50n })
    wallet(ACME).leased = 50n
    assert.equal(settle(REVOKED), 'written')
    assert.deepEqual(
      done.map(([what]) => what),
      ['complete', 'charge', 'log', 'void', 'log', 'free'],
    )
    const figures = [spent(), leases.get('l')?.held, wallet(ACME).leased]
    assert.deepEqual(figures, [[0n, 0n], 30n, 30n])
    assert.equal(settle(REVOKED), 'known')
    assert.deepEqual([spent(), leases.get('l')?.held, wallet(ACME).leased], figures)
  })

  it('is undone where it was stored without an answer, and draws no more', () => {
    const { settle, spent, wallet, leases } = records()
    leases.set('l', { wallet: ACME, held: 50n })
    wallet(ACME).leased = 50n
    settle({ ...REVOKED, kind: 'charge' })
    assert.equal(settle(REVOKED), 'known')
    assert.deepEqual([spent(), leases.get('l')?.held, wallet(ACME).leased], [[0n, 0n], 30n, 30n])
  })

  it('whose claim is another’s is fenced: nothing is spent or drawn, but its end is logged, again too', () => {
    const { settle, spent, done, wallet, leases } = records({ isOwned: false })
    leases.set('l', { wallet: ACME, held: 50n })
    wallet(ACME).leased = 50n
    for (const times of [1, 2]) {
      assert.equal(settle(REVOKED), 'fenced')
      assert.deepEqual([spent(), leases.get('l')?.held, wallet(ACME).leased], [[0n, undefined], 50n, 50n])
      assert.equal(done.filter(([what]) => what === 'log').length, times)
    }
    assert.deepEqual(
      done.map(([what]) => what),
      ['complete', 'void', 'log', 'free', 'complete', 'log', 'free'],
    )
  })
})
