import assert from 'node:assert/strict'
import { it } from 'node:test'
import { adminRoutes } from '../../lib/management/index.ts'
import { beginCall } from '../../lib/middleware/begin-call/index.ts'
import { errorEnvelope } from '../../lib/middleware/error-envelope/index.ts'
import { isEnvelope } from '../support/answer-bodies.ts'
import { recordingLogger, serveApp } from '../support/app-server.ts'
import { sqlStores } from './admin-server.ts'

const FAULT = 'connect ECONNREFUSED 10.0.0.7:5432'

it('a store that is away is an internal error that names the reason to operators, and to no caller', async (t) => {
  const { accounts, ledger, close } = await sqlStores()
  t.after(close)
  const away = async () => {
    throw new Error(FAULT)
  }
  const logger = recordingLogger()
  const server = await serveApp((app) => {
    app.use(beginCall({ logger }))
    app.use('/admin', adminRoutes({ accounts, ledger }))
    app.use(errorEnvelope())
  })
  t.after(() => server.close())
  t.mock.method(accounts, 'list', away)
  t.mock.method(accounts, 'deposit', away)
  t.mock.method(ledger, 'wallets', away)
  t.mock.method(ledger, 'check', away)
  t.mock.method(ledger, 'leases', away)

  const asked = ['/accounts', '/accounts/acme', '/accounts/acme/deposits', '/leases', '/ledger/check']
  for (const path of asked) {
    const body = path.endsWith('/deposits') && JSON.stringify({ amount: '1', reference: 'r' })
    const response = await fetch(`${server.url}/admin${path}`, {
      ...(body && { method: 'POST', body, headers: { 'content-type': 'application/json' } }),
    })
    const text = await response.text()
    const json: unknown = JSON.parse(text)
    assert.ok(isEnvelope(json))
    assert.deepEqual([response.status, json.error.code], [500, 'internal_error'], path)
    assert.doesNotMatch(text, /ECONNREFUSED|10\.0\.0\.7/)
    const told = logger.lines.at(-1)
    assert.ok(told)
    assert.deepEqual([told.level, told.fields.path], ['error', `/admin${path}`])
    assert.equal((told.fields.err as Error).message, FAULT)
  }
  assert.equal(logger.lines.length, asked.length)
})
