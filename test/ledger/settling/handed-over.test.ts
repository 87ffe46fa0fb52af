import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import type { CallLogEntry } from '../../../lib/core/call/index.ts'
import type { Bill } from '../../../lib/ledger/pool/reservation.ts'
import { CLAIM, called, entryOf, FullBill, ONE, PLAIN, TEAM, USAGE } from '../support/one-bill.ts'
import { turns } from '../support/virtual-clock.ts'

describe('a charge that is sent', () => {
  it('has everything in its bill, and draws on each of its wallets', async () => {
    const { held, handed } = await called()
    assert.equal(await held.settle(new FullBill(200)), 'confirmed')
    assert.deepEqual(handed(), [
      {
        kind: 'charge',
        requestId: 'req',
        account: 'acme',
        key: 'k',
        amount: ONE,
        at: 7,
        basis: '["200"]',
        claim: CLAIM,
        entry: entryOf(200),
        budgets: [TEAM.wallet],
        cost: 3n,
        usage: USAGE,
        draws: [
          ['account:acme', ONE],
          ['key:k', ONE],
          [TEAM.wallet, ONE],
        ],
      },
    ])
  })

  it('has nothing that is not in its bill', async () => {
    const { held, handed } = await called({ isPlain: true })
    assert.equal(await held.settle(PLAIN), 'confirmed')
    assert.deepEqual(handed(), [
      {
        ...{ kind: 'charge', requestId: 'req', account: 'acme', key: null, amount: ONE, at: 7, basis: '[]' },
        ...{ claim: null, entry: null, budgets: [], cost: null, usage: null },
        draws: [['account:acme', ONE]],
      },
    ])
  })

  it('is written without an entry that cannot be built, and a listener may fail', async () => {
    const { held, last, process, shared } = await called()
    const bill: Bill = {
      ...PLAIN,
      entry: () => {
        throw new Error('no entry')
      },
      onResolved: () => {
        throw new Error('deaf')
      },
    }
    assert.equal(await held.settle(bill), 'confirmed')
    assert.equal(last().entry, null)
    const lines = process.logger.lines.map(({ message, fields }) => {
      const { err, requestId } = fields as { err: Error; requestId: string }
      return [message, err.message, requestId]
    })
    assert.deepEqual(lines, [
      ['a charge is written without its basis or log entry', 'no entry', 'req'],
      ['a listener to the outcome of a charge failed', 'deaf', 'req'],
    ])
    assert.deepEqual([process.pool.stats.queued, (await shared.check()).spent], [0, ONE])
  })

  it('is sent again with a bill that has replaced the first', async () => {
    const { held, ledger, clock, handed } = await called()
    ledger.faults.set('settle', 'fails')
    void held.settle(new FullBill(200))
    await turns()
    const kept = new FullBill(299)
    held.replaceBill(kept)
    ledger.mend()
    await clock.advance(100)
    const seen = handed().map(({ basis, entry }) => [basis, entry])
    assert.deepEqual(seen, [
      ['["200"]', entryOf(200)],
      ['["299"]', entryOf(299)],
    ])
    assert.deepEqual(kept.resolved, ['confirmed'])
  })
})

describe('the entry of a charge that is undone', () => {
  type Revoked = (() => CallLogEntry) | null
  const later = () => entryOf(503)
  const rows: [name: string, revoked: Revoked, kept: Bill | undefined, entry: CallLogEntry | null][] = [
    ['is that of the call as it has ended', later, undefined, entryOf(503)],
    ['is absent if another process writes it', null, undefined, null],
    ['is that of the bill that has replaced it', later, new FullBill(504), entryOf(504)],
    ['is absent if that bill has none', later, PLAIN, null],
    ['is absent if none was to be written, for any bill', null, new FullBill(504), null],
  ]
  for (const [name, revoked, kept, entry] of rows) {
    if (!kept)
      it(`${name}, in the void of a written charge`, async () => {
        const { held, last } = await called()
        const bill = new FullBill(200)
        await held.settle(bill)
        assert.equal(held.revoke(revoked), 'queued')
        await turns()
        const { kind, basis, draws, claim } = last()
        assert.deepEqual([kind, basis, draws, claim, last().entry], ['void', null, [], CLAIM, entry])
        assert.deepEqual(bill.resolved, ['confirmed', 'voided'])
      })

    it(`${name}, in the void of an unanswered charge`, async () => {
      const { held, ledger, clock, last, shared } = await called()
      ledger.faults.set('settle', 'unheard')
      void held.settle(new FullBill(200))
      await turns()
      assert.equal(held.revoke(revoked), 'queued')
      if (kept) held.replaceBill(kept)
      ledger.mend()
      await clock.advance(100)
      assert.deepEqual([last().kind, last().entry, last().claim], ['revoked', entry, CLAIM])
      assert.deepEqual((await shared.check()).spent, 0n)
    })
  }

  it('is that of the charge while that is sent for the first time', async () => {
    const { held, ledger, handed, shared } = await called()
    ledger.faults.set('settle', 'waits')
    const bill = new FullBill(200)
    void held.settle(bill)
    await turns()
    assert.equal(held.revoke(later), 'queued')
    ledger.mend()
    await turns()
    const seen = handed().map(({ kind, entry }) => [kind, entry])
    assert.deepEqual(seen, [
      ['charge', entryOf(200)],
      ['void', entryOf(503)],
    ])
    assert.deepEqual([bill.resolved, (await shared.check()).spent], [['voided'], 0n])
  })
})

describe('a charge that is undone again', () => {
  it('is queued until it is written, and then nothing is left to undo', async () => {
    const { held, ledger, handed } = await called()
    assert.equal(held.revoke(null), 'dropped', 'nothing was charged yet')
    await held.settle(new FullBill(200))
    ledger.faults.set('settle', 'waits')
    assert.deepEqual([held.revoke(null), held.revoke(null)], ['queued', 'queued'])
    ledger.mend()
    await turns()
    held.revoke(null)
    await turns()
    assert.deepEqual(
      handed().map(({ kind }) => kind),
      ['charge', 'void'],
    )
  })
})

describe('a charge that is not confirmed at the end of the process', () => {
  const rows: [isPlain: boolean, bill: Bill, told: object][] = [
    [
      false,
      new FullBill(200),
      { key: 'k', budgets: [TEAM.wallet], cost: '0.000000003', claim: CLAIM, basis: '["200"]' },
    ],
    [true, PLAIN, { key: null, budgets: [], cost: null, claim: null, basis: '[]' }],
  ]
  for (const [isPlain, bill, members] of rows)
    it(`is logged with everything needed to write it by hand: ${isPlain ? 'a plain one' : 'with all records'}`, async () => {
      const { held, ledger, clock, process } = await called({ isPlain })
      ledger.breakDown()
      void held.settle(bill)
      const closed = process.pool.close(500)
      await clock.advance(500)
      await closed
      const lines = process.logger.lines.filter(({ message }) =>
        message.includes('at the end of the process'),
      )
      const [{ fields } = { fields: {} }, ...others] = lines
      const { err, settlement } = fields as {
        err: Error
        settlement: { draws: { lease: string; wallet: string; amount: string }[] }
      }
      const { draws, ...told } = settlement
      const common = { kind: 'charge', requestId: 'req', account: 'acme', amount: '1', at: 7 }
      assert.deepEqual([told, err.message, others], [{ ...common, ...members }, 'the ledger is down', []])
      const wallets = isPlain ? ['account:acme'] : ['account:acme', 'key:k', TEAM.wallet]
      assert.deepEqual(
        draws.map(({ wallet, amount }) => [wallet, amount]),
        wallets.map((wallet) => [wallet, '1']),
      )
      assert.ok(draws.every(({ lease }) => lease !== ''))
    })
})
