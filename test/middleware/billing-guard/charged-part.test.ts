import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import express from 'express'
import { type CallLogEntry, callOf, type HeldPart } from '../../../lib/core/call/index.ts'
import { beginCall } from '../../../lib/middleware/begin-call/index.ts'
import { billingGuard } from '../../../lib/middleware/billing-guard/index.ts'
import { callLog } from '../../../lib/middleware/call-log/index.ts'
import { ledgerOf, units } from '../../ledger/support/faulty-ledger.ts'
import { PoolProcess } from '../../ledger/support/pool-process.ts'
import { cleaningUp } from '../../support/clean-up.ts'
import { listen } from '../../support/gateway.ts'
import { until } from '../../support/until.ts'

const ENDING = { outcome: { status: 200, errorCode: null, finish: 'completed' }, unsent: null } as const
const MINUTE = { unit: 'minute', quantity: 1, price: units(2) } as const

describe('a part of a call', async () => {
  const cleanUp = cleaningUp()

  it('is in the log entry of a call that ends while the ledger takes its charge', async () => {
    const shared = ledgerOf('100')
    const process = new PoolProcess(shared)
    const entries: CallLogEntry[] = []
    let charging: ReturnType<HeldPart['charge']> | undefined
    const app = express()
    app.use(
      beginCall(),
      callLog({ writer: { add: (entry) => entries.push(entry) } }),
      billingGuard({ pool: process.pool, account: () => 'acme', reserve: () => '1' }),
      async (req, res) => {
        const call = callOf(req)
        call.charge('1')
        await call.settle(ENDING)
        const parts = [await call.billing?.holdPart?.(MINUTE), await call.billing?.holdPart?.(MINUTE)]
        const [first, second] = parts as [HeldPart, HeldPart]
        await first.charge()
        process.ledger.faults.set('settle', 'waits')
        charging = second.charge()
        res.end('{}')
      },
    )
    const server = await listen(app)
    cleanUp.after(() => server.close())
    const response = await fetch(`http://127.0.0.1:${(server.address() as { port: number }).port}/`)
    assert.equal(await response.text(), '{}')
    await until(() => entries.length > 0, 'the entry of the call')
    const [entry] = entries
    assert.equal(entry?.billing?.charged, '5')
    assert.deepEqual(
      entry?.billing?.items.map(({ unit, quantity }) => [unit, quantity]),
      [
        ['own', 1],
        ['minute', 2],
      ],
    )
    process.ledger.mend()
    assert.deepEqual(
      process.ledger.settled.flat().map(({ requestId }) => requestId.replace(entry?.id ?? '', '')),
      ['', '.1', '.2'],
    )
    assert.equal(await charging, undefined)
    assert.equal((await shared.check()).spent, units(5))
  })
})
