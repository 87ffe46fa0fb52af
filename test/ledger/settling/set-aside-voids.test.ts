import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { MemoryLedger, type Settlement } from '../../../lib/ledger/index.ts'
import { Reservation } from '../../../lib/ledger/pool/reservation.ts'
import { units } from '../support/faulty-ledger.ts'
import { PoolProcess, settle } from '../support/pool-process.ts'

const ONE = units(1)
const SET_ASIDE = 'a settlement fails while others are written: it is set aside'

/** A process whose ledger does not take the charge `bad`, or its void, until it is mended; those of another account it does. */
async function refusing(kinds: readonly Settlement['kind'][]) {
  const shared = new MemoryLedger({ accounts: ['acme', 'busy'].map((id) => ({ id, balance: '1000' })) })
  const process = new PoolProcess(shared)
  const { ledger, clock } = process
  const whole = ledger.settle.bind(ledger)
  /** As what the charge was handed over, one entry for each time that it was not taken. */
  const tried: Settlement['kind'][] = []
  const refuse = (refused: readonly Settlement['kind'][]) => {
    ledger.settle = (settlements) => {
      const bad = settlements.find(({ kind, requestId }) => requestId === 'bad' && refused.includes(kind))
      if (!bad) return whole(settlements)
      tried.push(bad.kind)
      return Promise.reject(new Error('out of range'))
    }
  }
  refuse(kinds)
  const bad = await process.admitted(ONE)
  let others = 0
  return {
    ...{ shared, process, bad, tried, refuse },
    mend: () => {
      ledger.settle = whole
    },
    async passBusily(ms: number): Promise<void> {
      for (let left = ms; left > 0; left -= 500) {
        const held = Promise.resolve(process.pool.reserve({ account: 'busy', key: null, amount: ONE }))
        void held.then((call) => {
          if (call instanceof Reservation) settle(call, `other-${++others}`, ONE)
        })
        await clock.advance(500)
      }
    },
    others: () => others,
    /** Calls of the account itself. Answers how many of them were refused. */
    async passAlone(ms: number): Promise<number> {
      let refused = 0
      for (let left = ms; left > 0; left -= 100) {
        const held = Promise.resolve(process.pool.reserve({ account: 'acme', key: null, amount: ONE }))
        void held.then((call) => {
          if (call instanceof Reservation) settle(call, `own-${++others}`, ONE)
          else refused++
        })
        await clock.advance(100)
      }
      return refused
    },
  }
}

describe('the void of a charge', () => {
  type Kind = Settlement['kind']
  const rows: [name: string, refused: readonly Kind[], revokedAfterMs: number, toldAs: Kind][] = [
    ['that fails', ['charge', 'revoked', 'void'], 0, 'void'],
    ['that was set aside', ['charge', 'revoked', 'void'], 3000, 'charge'],
    ['that stands', ['void'], 3000, 'void'],
  ]
  for (const [name, refused, revokedAfterMs, toldAs] of rows)
    it(`${name} is set aside if the ledger fails it, logged once, and written when it succeeds`, async () => {
      const { shared, process, bad, mend, passBusily, others } = await refusing(refused)
      const { resolved } = settle(bad, 'bad', ONE)
      await passBusily(revokedAfterMs)
      assert.equal(bad.revoke(null), 'queued')
      assert.equal(bad.revoke(null), 'queued', 'again')
      await passBusily(20_000)
      assert.deepEqual([process.pool.stats.setAside, process.pool.stats.queued], [1, 0])
      const told = process.logger.lines
        .filter(({ message }) => message === SET_ASIDE)
        .map(({ fields }) => (fields as { settlement: Record<string, unknown> }).settlement.kind)
      assert.deepEqual(told, [toldAs])
      mend()
      await passBusily(100_000)
      const taken = process.ledger.settled.flat().filter(({ requestId }) => requestId === 'bad')
      const kinds = taken.map(({ kind }) => kind)
      assert.deepEqual(kinds, refused.includes('charge') ? ['void'] : ['charge', 'void'])
      assert.equal(resolved.at(-1), 'voided')
      assert.equal(process.pool.stats.setAside, 0)
      const [acme, busy] = await shared.wallets(['account:acme', 'account:busy'])
      assert.deepEqual([acme?.spent, busy?.spent], [0n, BigInt(others()) * ONE])
      assert.deepEqual((await shared.check()).violations, [])
    })

  it('of a charge that is revoked during its late write is written after it', async () => {
    const { shared, process, bad, mend, passBusily } = await refusing(['charge'])
    const { resolved } = settle(bad, 'bad', ONE)
    await passBusily(3000)
    assert.equal(process.pool.stats.setAside, 1)
    mend()
    process.ledger.faults.set('settle', 'late')
    const closed = process.pool.close()
    await process.clock.advance(0)
    assert.equal((await shared.wallets(['account:acme']))[0]?.spent, ONE, 'stored, and not answered')
    assert.equal(bad.revoke(null), 'queued')
    process.ledger.mend()
    await process.clock.advance(1000)
    await closed
    assert.equal(resolved.at(-1), 'voided')
    assert.equal((await shared.wallets(['account:acme']))[0]?.spent, 0n)
    assert.deepEqual((await shared.check()).violations, [])
  })

  it('that fails as well delays its account for a while, even without other calls', async () => {
    const { shared, process, bad, mend, passAlone, others } = await refusing(['charge', 'revoked', 'void'])
    settle(bad, 'bad', ONE)
    bad.revoke(null)
    await process.clock.advance(5000)
    const refused = await passAlone(20_000)
    assert.ok(refused < 50, `${refused} of 200 refused`)
    assert.equal(process.pool.stats.setAside, 1)
    assert.equal(await passAlone(10_000), 0)
    mend()
    await passAlone(100_000)
    assert.equal(process.pool.stats.setAside, 0)
    const [acme] = await shared.wallets(['account:acme'])
    assert.equal(acme?.spent, BigInt(others()) * ONE)
    assert.deepEqual((await shared.check()).violations, [])
  })

  it('has as many attempts of its own as a charge, after any failures of its charge', async () => {
    for (const failures of [1, 2]) {
      const { process, bad, tried, refuse, mend, passBusily } = await refusing(['charge'])
      const { resolved } = settle(bad, 'bad', ONE)
      while (tried.length < failures) await process.clock.advance(10)
      mend()
      await passBusily(3000)
      assert.deepEqual([tried.length, resolved], [failures, ['confirmed']])
      refuse(['void'])
      tried.length = 0
      bad.revoke(null)
      await passBusily(20_000)
      assert.equal(process.pool.stats.setAside, 1)
      assert.deepEqual(tried, ['void', 'void', 'void'], `${failures} failures before`)
    }
  })

  it('is logged although its charge was, if that was written in the end', async () => {
    const { process, bad, refuse, mend, passBusily } = await refusing(['charge'])
    const { resolved } = settle(bad, 'bad', ONE)
    await passBusily(20_000)
    assert.equal(process.pool.stats.setAside, 1)
    mend()
    await passBusily(40_000)
    assert.deepEqual([process.pool.stats.setAside, resolved], [0, ['confirmed']])
    refuse(['void'])
    bad.revoke(null)
    await passBusily(20_000)
    const told = process.logger.lines
      .filter(({ message }) => message === SET_ASIDE)
      .map(({ fields }) => (fields as { settlement: Record<string, unknown> }).settlement.kind)
    assert.deepEqual(told, ['charge', 'void'])
  })
})

describe('a charge', () => {
  it('is set aside at the third failure alone while others are written, and is logged with its failure', async () => {
    const { process, bad, tried, passBusily } = await refusing(['charge'])
    settle(bad, 'bad', ONE)
    await passBusily(20_000)
    assert.deepEqual([tried.length, process.pool.stats.setAside], [3, 1])
    const [{ fields } = { fields: {} }] = process.logger.lines.filter(({ message }) => message === SET_ASIDE)
    assert.equal((fields as { err: Error }).err.message, 'out of range')
  })
})
