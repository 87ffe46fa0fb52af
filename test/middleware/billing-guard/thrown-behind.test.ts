import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { callOf } from '../../../lib/core/call/index.ts'
import { LateLedger } from '../../ledger/support/late-ledger.ts'
import { eventually } from '../../support/app-server.ts'
import { type PaidAppOptions, servePaid } from './paid-app.ts'

const BEHIND: Record<string, PaidAppOptions['handler']> = {
  'throws behind its answer': (req, res) => {
    callOf(req).charge('0.25')
    res.json({ drawn: true })
    throw new Error('not so fine')
  },
  'charges again behind its answer': (req, res) => {
    callOf(req).charge('0.25')
    res.json({ drawn: true })
    callOf(req).charge('0.25')
  },
}

describe('a handler that goes wrong while the end of its answer waits for the commit', () => {
  for (const [what, handler] of Object.entries(BEHIND))
    it(`has answered, and the call counts as completed: it ${what}`, async (t) => {
      const ledger = new LateLedger({ accounts: [{ id: 'acme', balance: '10' }] })
      const app = await servePaid({ ledger, handler, confirmMs: 60_000 })
      t.after(() => app.close())
      const answer = app.get()
      await eventually(() => ledger.held === 1, 'the commit')
      ledger.open()
      const { status } = await answer
      assert.equal(status, 200)
      const [call] = app.handled
      await eventually(() => call?.ended === true, 'the end of the call')
      assert.deepEqual(call?.outcome, { status: 200, errorCode: null, finish: 'completed' })
      assert.equal((await app.account('acme')).spent, '0.25')
    })
})
