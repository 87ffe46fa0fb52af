import assert from 'node:assert/strict'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, it } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { cleaningUp } from '../../support/clean-up.ts'
import { startGatewayProcess, temporaryFolder } from '../../support/gateway-process.ts'
import { startPostgres, WITHOUT_POSTGRES } from '../../support/postgres-server.ts'
import { startRedis, WITHOUT_REDIS } from '../../support/redis-server.ts'
import { beginSession, SESSION_KINDS } from '../../support/session-gateway.ts'
import { endlessUpstream } from '../../support/session-upstream.ts'

const ADMIN_TOKEN = 'admin-token-of-the-test'
const EXPIRES_IN_MS = 500

/** The operations on a key, and the code that its calls end with. */
const ENDS: Readonly<
  Record<string, readonly [code: string, method: string, path: string, body: () => object]>
> = {
  deleted: ['invalid_credential', 'DELETE', '', () => ({})],
  rotated: ['invalid_credential', 'POST', '/rotate', () => ({})],
  disabled: ['key_disabled', 'PATCH', '', () => ({ enabled: false })],
  expired: [
    'key_expired',
    'PATCH',
    '',
    () => ({ expires_at: new Date(Date.now() + EXPIRES_IN_MS).toISOString() }),
  ],
}
const CASES = Object.keys(ENDS).flatMap((end) =>
  SESSION_KINDS.map((kind) => ({ end, kind, id: `${kind}-${end}` })),
)

describe('a key that ends at one gateway', {
  skip: WITHOUT_POSTGRES || WITHOUT_REDIS,
  concurrency: true,
}, async () => {
  if (WITHOUT_POSTGRES || WITHOUT_REDIS) return
  const cleanUp = cleaningUp()
  const folder = await temporaryFolder()
  cleanUp.after(() => folder.remove())
  const [postgres, redis, upstream] = await Promise.all([
    startPostgres(),
    startRedis(),
    endlessUpstream(cleanUp),
  ])
  cleanUp.after(() => postgres.close())
  cleanUp.after(() => redis.close())
  const config = join(folder.path, 'config.json')
  const ids = [...CASES.map(({ id }) => id), 'bystander']
  await writeFile(
    config,
    JSON.stringify({
      accounts: ids.map((id) => ({ id, limits: { concurrency: 4 } })),
      keys: ids.map((id) => ({ id, account: id, secret: `sk-${id}` })),
      models: [{ id: 'chat', kind: 'chat' }],
      lines: [
        { id: 'l', provider: 'p', protocol: 'openai', baseUrl: `${upstream.url}/v1`, models: { chat: 'u' } },
      ],
      passThrough: ['/v1/bytes', '/v1/realtime'].map((path) => ({ path, lines: ['l'], raw: true })),
    }),
  )
  const env = {
    GATEWAY_CONFIG: config,
    DATABASE_URL: await postgres.createDatabase(),
    REDIS_URL: `redis://127.0.0.1:${redis.port}`,
    ADMIN_TOKEN,
  }
  const here = await startGatewayProcess(env)
  cleanUp.after(() => here.stop())
  const there = await startGatewayProcess(env)
  cleanUp.after(() => there.stop())
  const bystanders = await Promise.all(SESSION_KINDS.map((kind) => beginSession(there, kind, 'sk-bystander')))
  const from = performance.now()

  for (const { end, kind, id } of CASES) {
    it(`ends its calls at the other: ${kind}, ${end}`, async () => {
      const [code, method, path, body] = ENDS[end] as (typeof ENDS)[string]
      const session = await beginSession(there, kind, `sk-${id}`)
      if (kind === 'upload') await sleep(500)
      const answer = await fetch(`${here.url}/admin/keys/${id}${path}`, {
        method,
        headers: { authorization: `Bearer ${ADMIN_TOKEN}`, 'content-type': 'application/json' },
        body: JSON.stringify(body()),
      })
      assert.equal(answer.status, 200, await answer.text())
      const changedAt = performance.now()
      const told = await session.ended()
      const took = performance.now() - changedAt - (end === 'expired' ? EXPIRES_IN_MS : 0)
      assert.ok(took < 5000, `${took} ms`)
      if (kind === 'websocket') assert.equal(told, `1008 ${code}`)
      else if (kind !== 'download') assert.match(told, new RegExp(`"code":"${code}"`))
      session.leave()
    })
  }

  it('ends no calls of other keys', async () => {
    await sleep(Math.max(0, 5500 - (performance.now() - from)))
    assert.deepEqual(
      bystanders.map(({ over }) => over),
      [false, false, false, false],
    )
    for (const each of bystanders) each.leave()
  })
})
