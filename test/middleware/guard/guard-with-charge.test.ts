import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import express from 'express'
import { billingGuard, callOf, errorEnvelope, guard, LeasePool, MemoryLedger } from '../../../lib/index.ts'
import type { Ledger } from '../../../lib/ledger/index.ts'
import { patterns } from '../../../lib/middleware/guard/index.ts'
import { serveApp } from '../../support/app-server.ts'

const CARD = '4111 1111 1111 1111'
const mask = patterns({ mask: [/\d{4}(?: \d{4}){3}/] })

/** An app whose answers are checked and charged, by a ledger that answers later, or fails. */
async function charged(t: { after(run: () => unknown): void }, isAway = false) {
  const memory = new MemoryLedger({ accounts: [{ id: 'acme', balance: '1' }] })
  const written = memory.settle.bind(memory)
  const state = { isAway }
  const ledger: Ledger = Object.assign(memory, {
    settle: async (given: Parameters<Ledger['settle']>[0]) => {
      await new Promise((resolve) => setTimeout(resolve, 20))
      if (state.isAway) throw new Error('away')
      return written(given)
    },
  })
  const logger = { info() {}, warn() {}, error() {} }
  const pool = new LeasePool({ ledger, logger, confirmMs: 300 })
  const served = await serveApp((app) => {
    app.use(
      express.json(),
      guard({ output: mask }),
      billingGuard({ pool, reserve: () => '0.1', account: () => 'acme', key: () => null }),
    )
    app.post('/whole', (req, res) => {
      callOf(req).charge('0.05')
      res.status(201).json({ said: `my card: ${CARD}` })
    })
    app.post('/stream', (req, res) => {
      callOf(req).charge('0.05')
      res.writeHead(200, { 'content-type': 'text/event-stream' })
      res.write(`data: my card: ${CARD}\n\n`)
      res.end('data: the end\n\n')
    })
    app.use(errorEnvelope({ logger }))
  })
  t.after(() => served.close())
  t.after(() => {
    state.isAway = false
    return pool.close()
  })
  return {
    spent: async () => (await memory.wallets(['account:acme']))[0]?.spent,
    post: (path: string) => fetch(served.url + path, { method: 'POST' }),
  }
}

describe('an answer that is checked, and whose end waits for its charge', () => {
  it('has its own status and headers, and is charged', async (t) => {
    const { post, spent } = await charged(t)
    const response = await post('/whole')
    assert.equal(response.status, 201)
    assert.match(response.headers.get('content-type') ?? '', /json/)
    assert.deepEqual(await response.json(), { said: 'my card: [removed]' })
    assert.equal(await spent(), 50_000_000n)
  })

  it('is whole as a stream, too', async (t) => {
    const { post, spent } = await charged(t)
    const response = await post('/stream')
    assert.equal(response.status, 200)
    assert.equal(await response.text(), 'data: my card: [removed]\n\ndata: the end\n\n')
    assert.equal(await spent(), 50_000_000n)
  })

  it('is an error if it cannot be charged, and nothing of the answer goes out', async (t) => {
    const { post, spent } = await charged(t, true)
    const response = await post('/whole')
    assert.equal(response.status, 503)
    const text = await response.text()
    assert.match(text, /billing_unavailable/)
    assert.doesNotMatch(text, /my card/)
    assert.equal(await spent(), 0n)
  })
})
