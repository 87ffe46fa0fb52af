import assert from 'node:assert/strict'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, it } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { WebSocket } from 'ws'
import { jsonOf } from '../../support/answer-bodies.ts'
import { rawClient } from '../../support/app-server.ts'
import { cleaningUp } from '../../support/clean-up.ts'
import {
  type GatewayProcess,
  lookUp,
  startGatewayProcess,
  temporaryFolder,
} from '../../support/gateway-process.ts'
import { endlessUpstream } from '../../support/session-upstream.ts'
import { untilAsync } from '../../support/until.ts'
import { FAST } from '../chaos/fast-gateways.ts'

const SPEED = 20
const MINUTE_MS = 60_000 / SPEED
const ADMIN_TOKEN = 'admin-token-of-the-test'

describe('a session that is priced by the minute', { concurrency: true }, async () => {
  const cleanUp = cleaningUp()
  const folder = await temporaryFolder()
  cleanUp.after(() => folder.remove())
  const upstream = await endlessUpstream(cleanUp)
  const accounts = [
    { id: 'poor', balance: '0.07' },
    { id: 'quota' },
    { id: 'leaves', balance: '1' },
    { id: 'download', balance: '0.05' },
    { id: 'killed', balance: '1' },
    { id: 'bystander' },
  ]
  const config = join(folder.path, 'config.json')
  const price = { perRequest: '0.01', perMinute: '0.02' }
  const cost = { perRequest: '0.001', perMinute: '0.015' }
  await writeFile(
    config,
    JSON.stringify({
      accounts,
      keys: accounts.map(({ id }) => ({
        id,
        account: id,
        secret: `sk-${id}`,
        ...(id === 'quota' && { quota: '0.05' }),
      })),
      models: [{ id: 'm', kind: 'chat' }],
      lines: [
        {
          id: 'l',
          provider: 'p',
          protocol: 'openai',
          baseUrl: `${upstream.url}/v1`,
          models: { m: 'u' },
          // On the fast clock, a busy machine needs minutes to connect.
          timeouts: { connectMs: 600_000, firstByteMs: 600_000, idleMs: 3_600_000 },
        },
      ],
      passThrough: ['/v1/bytes', '/v1/realtime'].map((path) => ({ path, lines: ['l'], price, cost })),
    }),
  )
  const start = async (): Promise<GatewayProcess> => {
    const gateway = await startGatewayProcess({
      ...FAST,
      CLOCK_SPEED: `${SPEED}`,
      ADMIN_TOKEN,
      GATEWAY_CONFIG: config,
      DATABASE_URL: `sqlite:${join(folder.path, 'gateway.db')}`,
    })
    cleanUp.after(() => gateway.stop())
    return gateway
  }
  let gateway = await start()
  const admin = (path: string) =>
    fetch(`${gateway.url}/admin${path}`, { headers: { authorization: `Bearer ${ADMIN_TOKEN}` } })
  const account = async (id: string) =>
    jsonOf<{ spent: string; leased: string; balance: string | null }>(await admin(`/accounts/${id}`))
  const sound = async () =>
    assert.deepEqual((await jsonOf<{ violations: unknown[] }>(await admin('/ledger/check'))).violations, [])

  function open(id: string) {
    const socket = new WebSocket(`${gateway.url.replace('http', 'ws')}/v1/realtime`, {
      headers: { authorization: `Bearer sk-${id}` },
    })
    const begun = new Promise<string>((resolve, reject) => {
      socket.on('error', reject)
      socket.once('upgrade', ({ headers }) => resolve(String(headers['x-request-id'])))
    })
    begun.catch(() => {})
    const ended = new Promise<string>((resolve) =>
      socket.once('close', (code, reason) => resolve(`${code} ${reason}`)),
    )
    return { socket, begun, ended }
  }

  const bystander = open('bystander')
  await bystander.begun

  for (const [id, code, minutes] of [
    ['poor', 'insufficient_balance', 3],
    ['quota', 'key_quota_exhausted', 2],
  ] as const) {
    it(`ends where the next minute cannot be held: ${code}`, async () => {
      const { begun, ended } = open(id)
      const requestId = await begun
      const from = performance.now()
      assert.equal(await ended, `1008 ${code}`)
      const took = (performance.now() - from) / MINUTE_MS
      assert.ok(took > minutes - 0.5 && took < minutes + 1, `${took} minutes`)
      const entry = await lookUp(gateway.url, requestId, `sk-${id}`)
      assert.deepEqual([entry.status, entry.outcome, entry.error_code], [101, 'interrupted', code])
      const paid = id === 'poor' ? '0.07' : '0.05'
      assert.equal(entry.billing?.charged, paid)
      assert.deepEqual(
        entry.billing?.items.map(({ unit, quantity }) => [unit, quantity]),
        [
          ['request', 1],
          ['minute', minutes],
        ],
      )
      assert.equal(entry.usage?.minutes, minutes)
      assert.equal((await account(id)).spent, paid)
      const [used] = (await jsonOf<{ data: object[] }>(await admin(`/usage?account=${id}`))).data
      const cost = id === 'poor' ? '0.046' : '0.031'
      assert.deepEqual({ ...used, charged: paid, cost }, used, 'what it cost the operator')
      const seen = await jsonOf<typeof entry>(await admin(`/calls/${requestId}`))
      assert.equal(seen.billing?.cost, cost)
      await sound()
    })
  }

  it('is charged for the minutes that it has begun, and what is held for more goes back', async () => {
    const { socket, begun } = open('leaves')
    const requestId = await begun
    await sleep(1.95 * MINUTE_MS)
    socket.close()
    const entry = await lookUp(gateway.url, requestId, 'sk-leaves')
    // On a machine that is short of time the next one has begun when the gateway reads the close.
    const minutes = entry.usage?.minutes ?? 0
    assert.ok(minutes === 2 || minutes === 3, `${minutes} minutes`)
    const paid = minutes === 2 ? '0.05' : '0.07'
    assert.deepEqual([entry.outcome, entry.error_code, entry.billing?.charged], ['completed', null, paid])
    await untilAsync(async () => (await account('leaves')).leased === '0', 'the return of the lease')
    assert.equal((await account('leaves')).spent, paid)
  })

  it('may be an answer, which is broken off', async () => {
    const raw = rawClient(
      gateway.port,
      'GET /v1/bytes HTTP/1.1\r\nhost: x\r\nauthorization: Bearer sk-download\r\n\r\n',
    )
    const received = await raw.end()
    const requestId = /x-request-id: (\S+)/i.exec(received)?.[1] ?? null
    const entry = await lookUp(gateway.url, requestId, 'sk-download')
    assert.deepEqual(
      [entry.status, entry.error_code, entry.billing?.charged],
      [200, 'insufficient_balance', '0.05'],
    )
  })

  it('goes on for others, and is paid up to the minute in which its process is killed', async () => {
    const { begun } = open('killed')
    await begun
    await sleep(3.5 * MINUTE_MS)
    assert.equal(bystander.socket.readyState, WebSocket.OPEN)
    assert.equal((await account('killed')).spent, '0.09')
    gateway.kill('SIGKILL')
    await gateway.exited
    gateway = await start()
    assert.equal((await account('killed')).spent, '0.09')
    await sound()
  })
})
