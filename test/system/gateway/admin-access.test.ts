import assert from 'node:assert/strict'
import { afterEach, describe, it } from 'node:test'
import { envelopeOf, jsonOf } from '../../support/answer-bodies.ts'
import {
  type Environment,
  type GatewayProcess,
  runToExit,
  startGatewayProcess,
} from '../../support/gateway-process.ts'

const TOKEN = 'admin-token-of-this-test'

let gateway: GatewayProcess | undefined
afterEach(() => gateway?.stop())

async function start(env: Environment): Promise<GatewayProcess> {
  gateway = await startGatewayProcess(env)
  return gateway
}

async function listed(path: string): Promise<number> {
  const headers = { authorization: `Bearer ${TOKEN}` }
  const answer = await fetch(`${gateway?.url}/admin${path}`, { headers })
  return (await jsonOf<{ data: object[] }>(answer)).data.length
}

const PATHS = [
  'GET /accounts',
  'POST /accounts',
  'GET /accounts/acme',
  'PATCH /accounts/acme',
  'POST /accounts/acme/deposits',
  'GET /keys',
  'POST /keys',
  'GET /keys/k',
  'PATCH /keys/k',
  'DELETE /keys/k',
  'POST /keys/k/rotate',
  'GET /lines',
  'GET /lines/one',
  'PATCH /lines/one',
  'GET /calls',
  'GET /calls/req_1',
  'GET /tickets',
  'GET /tickets/tkt_1',
  'PATCH /tickets/tkt_1',
  'GET /leases',
  'GET /ledger/check',
  'GET /changes',
  'GET /video-tasks',
  'GET /video-tasks/video_1',
  'POST /video-tasks/video_1/resolve',
]

describe('access to the admin API of the assembled gateway', () => {
  it('answers nothing without the token, on no path', async () => {
    const { url } = await start({ ADMIN_TOKEN: TOKEN })
    const keys = await listed('/keys')
    for (const row of PATHS) {
      const [method = '', path = ''] = row.split(' ')
      for (const [headers, code] of [
        [{}, 'missing_credential'],
        [{ 'x-api-key': TOKEN }, 'missing_credential'],
        [{ authorization: 'Bearer sk-1' }, 'invalid_credential'],
        [{ authorization: `Bearer ${TOKEN}x` }, 'invalid_credential'],
      ] as const) {
        const answer = await fetch(`${url}/admin${path}`, { method, headers })
        assert.deepEqual([answer.status, (await envelopeOf(answer)).error.code], [401, code], row)
      }
    }
    assert.deepEqual([await listed('/changes'), await listed('/keys')], [0, keys])
  })

  it('is not there without a token', async () => {
    const { url } = await start({})
    for (const row of PATHS) {
      const [method = '', path = ''] = row.split(' ')
      const answer = await fetch(`${url}/admin${path}`, { method })
      assert.deepEqual([answer.status, (await envelopeOf(answer)).error.code], [404, 'not_found'], row)
    }
  })

  it('does not start with a short token where others can reach it, and does not print it', async () => {
    for (const HOST of ['0.0.0.0', '127.example.invalid']) {
      const { code, stderr } = await runToExit({ ADMIN_TOKEN: 'short-token-123', HOST })
      assert.equal(code, 1)
      assert.match(stderr, /^ADMIN_TOKEN: must be at least 16 characters[^\n]+\n$/)
      assert.doesNotMatch(stderr, /short-token/)
    }
  })

  for (const [token, HOST] of [
    ['short', '127.0.0.1'],
    ['short', 'localhost'],
    ['exactly-16-chars', '0.0.0.0'],
  ] as const) {
    it(`starts with a token of ${token.length} characters on ${HOST}`, async () => {
      const { port } = await start({ ADMIN_TOKEN: token, HOST })
      const headers = { authorization: `Bearer ${token}` }
      const answer = await fetch(`http://127.0.0.1:${port}/admin/keys`, { headers })
      assert.equal(answer.status, 200)
    })
  }
})
