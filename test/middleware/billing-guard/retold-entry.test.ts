import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import type { CallLogEntry } from '../../../lib/core/call/index.ts'
import { MemoryLedger } from '../../../lib/ledger/index.ts'
import { PoolProcess } from '../../ledger/support/pool-process.ts'

describe('a charge that is handed to the ledger again', () => {
  it('has the log entry of the call as it has ended by then, and is else the same', async () => {
    const shared = new MemoryLedger({ accounts: [{ id: 'acme', balance: '10' }] })
    const { pool, ledger, clock } = new PoolProcess(shared, { settlesRecords: true })
    const held = await pool.reserve({ account: 'acme', key: null, amount: 1_000_000_000n })
    assert.ok('settle' in held)
    let outcome: CallLogEntry['outcome'] = 'completed'
    ledger.faults.set('settle', 'fails')
    const settling = held.settle({
      requestId: 'req',
      amount: 500_000_000n,
      at: 0,
      basis: () => '[]',
      claim: null,
      entry: () => ({ id: 'req', outcome }) as CallLogEntry,
    })
    await clock.advance(1600)
    assert.equal(await settling, 'unconfirmed')
    outcome = 'interrupted'
    ledger.faults.clear()
    await clock.advance(600)
    const [first, ...others] = ledger.settled.flat()
    const last = others.at(-1)
    assert.deepEqual([first?.entry?.outcome, last?.entry?.outcome], ['completed', 'interrupted'])
    assert.deepEqual({ ...last, entry: null }, { ...first, entry: null })
    assert.equal((await shared.check()).spent, 500_000_000n)
    await pool.close()
  })
})
