import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { callOf } from '../../../lib/core/call/index.ts'
import { type PaidApp, type PaidAppOptions, servePaid } from '../../middleware/billing-guard/paid-app.ts'
import { envelopeOf } from '../../support/answer-bodies.ts'
import { eventually, rawClient } from '../../support/app-server.ts'
import { cleaningUp } from '../../support/clean-up.ts'
import { LateLedger } from '../support/late-ledger.ts'

type Served = PaidApp & { readonly ledger: LateLedger }

const cleanUp = cleaningUp()

async function serve(options: Omit<PaidAppOptions, 'ledger'>): Promise<Served> {
  const ledger = new LateLedger({ accounts: [{ id: 'acme', balance: '10' }] })
  const app = { ...(await servePaid({ ledger, ...options })), ledger }
  cleanUp.after(() => app.close())
  cleanUp.after(() => ledger.open())
  return app
}

const paid: PaidAppOptions['handler'] = (req, res) => {
  callOf(req).charge('0.25')
  res.json({ drawn: true })
}

const streamed: PaidAppOptions['handler'] = (req, res) => {
  callOf(req).charge('0.25')
  res.write('first ')
  res.end('last')
}

describe('the end of an answer', () => {
  it('waits for the commit of its charge', async () => {
    const app = await serve({ handler: paid, confirmMs: 60_000 })
    let answered = false
    const answer = app.get().finally(() => {
      answered = true
    })
    await eventually(() => app.ledger.held === 1, 'the commit')
    assert.equal(answered, false)
    app.ledger.open()
    assert.equal((await answer).status, 200)
    assert.equal((await app.account('acme')).spent, '0.25')
  })

  it('of a stream waits too, behind what was sent before', async () => {
    const app = await serve({ handler: streamed, confirmMs: 60_000 })
    const client = rawClient(
      app.port,
      'GET / HTTP/1.1\r\nhost: x\r\nx-account: acme\r\nconnection: close\r\n\r\n',
    )
    await client.until('first ')
    await eventually(() => app.ledger.held === 1, 'the commit')
    assert.doesNotMatch(client.received, /last/)
    app.ledger.open()
    assert.match(await client.end(), /last/)
  })
})

describe('a charge that is not confirmed in time', () => {
  it('withholds an unsent answer, and is undone in the end', async () => {
    const app = await serve({ handler: paid, confirmMs: 500 })
    const answer = await app.get()
    assert.equal(answer.status, 503)
    assert.equal((await envelopeOf(answer)).error.code, 'billing_unavailable')
    app.ledger.open()
    await app.pool.close()
    assert.deepEqual(await app.account('acme'), { spent: '0', leased: '0' })
    assert.deepEqual((await app.ledger.check()).violations, [])
  })

  it('interrupts a stream that has begun, and is charged once', async () => {
    const app = await serve({ handler: streamed, confirmMs: 500 })
    const client = rawClient(app.port, 'GET / HTTP/1.1\r\nhost: x\r\nx-account: acme\r\n\r\n')
    const received = await client.end()
    assert.match(received, /first /)
    assert.doesNotMatch(received, /last/)
    app.ledger.open()
    await app.pool.close()
    assert.deepEqual(await app.account('acme'), { spent: '0.25', leased: '0' })
  })

  it('does not withhold the answer if the app accepts the risk', async () => {
    const app = await serve({ handler: paid, confirmMs: 500, onStoreError: 'deliver' })
    assert.equal((await app.get()).status, 200)
    assert.equal((await app.account('acme')).spent, '0')
    app.ledger.open()
    await app.pool.close()
    assert.equal((await app.account('acme')).spent, '0.25')
  })
})
