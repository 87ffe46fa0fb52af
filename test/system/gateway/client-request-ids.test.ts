import assert from 'node:assert/strict'
import { join } from 'node:path'
import { describe, it } from 'node:test'
import type { CallLogEntry } from '../../../lib/middleware/call-log/index.ts'
import { BACKENDS } from '../../stores/sql/support/postgres-database.ts'
import { jsonOf } from '../../support/answer-bodies.ts'
import { chat, lookUp, post, startGatewayProcess, temporaryFolder } from '../../support/gateway-process.ts'

const ADMIN_TOKEN = 'admin-of-the-tests'

for (const { name, url: databaseUrl, skip } of BACKENDS) {
  describe(`the caller's own request id, kept in ${name}`, { skip }, () => {
    it('finds its calls for the account and for operators, is bounded, and is in the log', async (t) => {
      const folder = await temporaryFolder()
      t.after(() => folder.remove())
      const url = name === 'SQLite' ? `sqlite:${join(folder.path, 'gateway.db')}` : await databaseUrl(t)
      const gateway = await startGatewayProcess({ ADMIN_TOKEN, DATABASE_URL: url })
      t.after(() => gateway.stop())
      const get = async (path: string, token: string) => {
        const res = await fetch(`${gateway.url}${path}`, { headers: { authorization: `Bearer ${token}` } })
        assert.equal(res.status, 200)
        return (await jsonOf<{ data: CallLogEntry[] }>(res)).data.map(({ id }) => id)
      }
      const sent = async (id: string) => {
        const answer = await post(gateway.url, chat(), { 'x-request-id': id })
        await answer.arrayBuffer()
        const own = answer.headers.get('x-request-id') ?? ''
        assert.notEqual(own, id)
        await lookUp(gateway.url, own)
        return own
      }
      const long = 'x'.repeat(4000)
      const [one, two, other, cut] = [
        await sent('job-7'),
        await sent('job-7'),
        await sent('job-8'),
        await sent(long),
      ]
      const search = 'calls?client_request_id='
      assert.deepEqual(await get(`/v1/${search}job-7`, 'sk-demo'), [two, one])
      assert.deepEqual(await get(`/admin/${search}job-7`, ADMIN_TOKEN), [two, one])
      assert.deepEqual(await get(`/admin/${search}job-7&account=nobody`, ADMIN_TOKEN), [])
      assert.deepEqual(await get(`/v1/${search}job-8`, 'sk-demo'), [other])
      assert.deepEqual(await get(`/v1/${search}${long.slice(0, 200)}`, 'sk-demo'), [cut])
      const lines = gateway.logged.filter(({ clientRequestId }) => clientRequestId !== undefined)
      assert.deepEqual(
        lines.map(({ requestId, clientRequestId }) => [requestId, clientRequestId]),
        [
          [one, 'job-7'],
          [two, 'job-7'],
          [other, 'job-8'],
          [cut, long.slice(0, 200)],
        ],
      )
    })
  })
}

it('probes and scrapes have an id, and neither an entry nor a line in the log', async (t) => {
  const gateway = await startGatewayProcess({ ADMIN_TOKEN })
  t.after(() => gateway.stop())
  for (const path of ['/healthz', '/readyz', '/metrics'])
    for (const method of ['GET', 'HEAD']) {
      const res = await fetch(`${gateway.url}${path}`, { method })
      assert.deepEqual([res.status, res.headers.has('x-request-id')], [200, true])
      await res.arrayBuffer()
    }
  const missed = await fetch(`${gateway.url}/metrics`, { method: 'POST' })
  assert.equal(missed.status, 404)
  await missed.arrayBuffer()
  const call = await post(gateway.url, chat())
  await call.arrayBuffer()
  await lookUp(gateway.url, call.headers.get('x-request-id'))
  gateway.kill('SIGTERM')
  await gateway.exited
  const calls = gateway.logged.filter(
    ({ msg, path }) => msg === 'call' && !String(path).startsWith('/v1/calls/'),
  )
  assert.deepEqual(
    calls.map(({ method, path }) => `${method} ${path}`),
    ['POST /metrics', 'POST /v1/chat/completions'],
  )
})
