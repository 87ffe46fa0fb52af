import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import express from 'express'
import request from 'supertest'
import { accountRoutes } from '../../../lib/endpoints/account/index.ts'
import { MemoryLedger } from '../../../lib/ledger/index.ts'
import { authenticate, memoryKeyDirectory } from '../../../lib/middleware/authenticate/index.ts'
import { errorEnvelope } from '../../../lib/middleware/error-envelope/index.ts'

const accounts = [
  { id: 'acme', balance: '25.00', limits: { rpm: 600, tpm: 1000, concurrency: 5 } },
  { id: 'other', balance: '7.00' },
  { id: 'later' },
]
const keys = [
  { id: 'key_acme', account: 'acme', secret: 'sk-acme', limits: { rpm: 60, tpm: null } },
  { id: 'key_later', account: 'later', secret: 'sk-later' },
]

function app(ledger = new MemoryLedger({ accounts, keys })) {
  return express()
    .use('/v1', authenticate({ keys: memoryKeyDirectory({ accounts, keys }) }), accountRoutes({ ledger }))
    .use(errorEnvelope())
}

const as = (secret: string) => ({ authorization: `Bearer ${secret}` })

describe('GET /account', () => {
  it("answers what the key's own account has and may do, for its holder alone", async () => {
    const answer = await request(app()).get('/v1/account').set(as('sk-acme')).expect(200)
    assert.deepEqual(answer.body, {
      id: 'acme',
      object: 'account',
      prepaid: true,
      deposited: '25',
      spent: '0',
      balance: '25',
      leased: '0',
      available: '25',
      limits: { rpm: 600, tpm: 1000, concurrency: 5 },
      key: { id: 'key_acme', limits: { rpm: 60, tpm: null } },
    })
    assert.equal(answer.headers['cache-control'], 'private, no-store')
    assert.doesNotMatch(answer.text, /other|sk-/)
  })

  it('shows what is leased apart from what is available', async () => {
    const ledger = new MemoryLedger({ accounts, keys })
    const change = { kind: 'take', need: 1n, want: 2_000_000_000n } as const
    await ledger.change('a process', [{ lease: 'a lease', wallet: 'account:acme', seq: 1, change }])
    const { body } = await request(app(ledger)).get('/v1/account').set(as('sk-acme')).expect(200)
    assert.deepEqual([body.balance, body.leased, body.available], ['25', '2', '23'])
  })

  it('of an account without a balance says that it is not prepaid', async () => {
    const { body } = await request(app()).get('/v1/account').set(as('sk-later')).expect(200)
    assert.deepEqual([body.prepaid, body.balance, body.limits.rpm], [false, '0', null])
  })

  it('without a key shows nothing, also where no key was asked for', async () => {
    await request(app()).get('/v1/account').expect(401)
    const open = express()
      .use(accountRoutes({ ledger: new MemoryLedger({ accounts, keys }) }))
      .use(errorEnvelope())
    const answer = await request(open).get('/account').expect(401)
    assert.equal(answer.body.error.code, 'missing_credential')
  })

  it('a ledger that does not answer is an error, and no balance of zero', async () => {
    const ledger = { wallets: () => Promise.reject(new Error('gone')) }
    const away = express()
      .use(authenticate({ keys: memoryKeyDirectory({ accounts, keys }) }), accountRoutes({ ledger }))
      .use(errorEnvelope({ logger: { info() {}, warn() {}, error() {} } }))
    const answer = await request(away).get('/account').set(as('sk-acme')).expect(500)
    assert.equal(answer.body.error.code, 'internal_error')
    assert.doesNotMatch(answer.text, /gone|balance/)
  })

  it('is not put together without a ledger', () => {
    const options: unknown = {}
    assert.throws(() => accountRoutes(options as Parameters<typeof accountRoutes>[0]), /"ledger" must be/)
  })
})
