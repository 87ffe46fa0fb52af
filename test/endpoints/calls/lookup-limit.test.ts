import assert from 'node:assert/strict'
import { it } from 'node:test'
import { limitLookups, unlessLookup } from '../../../examples/gateway/endpoints.ts'
import { authenticate, memoryKeyDirectory } from '../../../lib/middleware/authenticate/index.ts'
import { beginCall } from '../../../lib/middleware/begin-call/index.ts'
import { errorEnvelope } from '../../../lib/middleware/error-envelope/index.ts'
import { MemoryLimitStore, rateLimit } from '../../../lib/middleware/rate-limit/index.ts'
import { envelopeOf } from '../../support/answer-bodies.ts'
import { serveApp } from '../../support/app-server.ts'

it('look-ups have a limit of their own by key, and take nothing from the limit of calls', async (t) => {
  const store = new MemoryLimitStore()
  const limits = { rpm: 1, tpm: null }
  const keys = memoryKeyDirectory({
    accounts: [{ id: 'acme' }],
    keys: ['one', 'two'].map((id) => ({ id, account: 'acme', secret: `sk-${id}`, limits })),
  })
  const server = await serveApp((app) => {
    app.use(beginCall(), authenticate({ keys }))
    app.use(
      limitLookups({ store, onStoreError: 'local', lookupsPerMinute: 3 }),
      unlessLookup(rateLimit({ store })),
    )
    app.use((_req, res) => void res.end())
    app.use(errorEnvelope())
  })
  t.after(() => server.close())
  const ask = async (key: string, method: string) => {
    const answer = await fetch(server.url, { method, headers: { authorization: `Bearer sk-${key}` } })
    return answer.ok ? 'ok' : (await envelopeOf(answer)).error.code
  }
  for (let i = 0; i < 3; i++) assert.equal(await ask('one', 'GET'), 'ok')
  assert.equal(await ask('one', 'GET'), 'rate_limited')
  assert.equal(await ask('two', 'GET'), 'ok', 'another key of the account')
  assert.equal(await ask('one', 'POST'), 'ok')
  assert.equal(await ask('one', 'POST'), 'rate_limited')
  assert.equal(await ask('two', 'GET'), 'ok')
})
