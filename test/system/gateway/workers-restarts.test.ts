import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { lookUp } from '../../support/gateway-process.ts'
import { startPostgres, WITHOUT_POSTGRES } from '../../support/postgres-server.ts'
import { startRedis, WITHOUT_REDIS } from '../../support/redis-server.ts'
import { type FileGateway, startFileGateway } from './file-gateway.ts'
import { keepAliveLoad, type Load } from './keep-alive-load.ts'
import { ASKED, answering, CALLERS, says } from './worker-processes.ts'

async function restartOneByOne(server: FileGateway, load: Load): Promise<void> {
  await load.more(20)
  const since = server.gateway.stdout.length
  server.gateway.kill('SIGUSR2')
  await says(server, 'workers restarted', since)
  await load.more(4 * CALLERS)
}

describe('WORKERS on SQLite', () => {
  it('are restarted one by one on SIGUSR2: no request fails, none is refused', async (t) => {
    const server = await startFileGateway(t, { WORKERS: '2' })
    const old = answering(server)
    const charged = (await server.ledger()).charges
    const load = keepAliveLoad(t, server.gateway.url, ASKED, CALLERS)
    await restartOneByOne(server, load)
    await restartOneByOne(server, load)
    const since = server.gateway.stdout.length
    await load.more(2 * CALLERS)
    await load.stop()
    assert.deepEqual(load.failures, [])
    for (const pid of answering(server, since)) assert.ok(!old.has(pid), `${pid} is an old one`)
    for (const id of load.ids.slice(-10)) {
      assert.equal((await lookUp(server.gateway.url, id)).outcome, 'completed')
    }
    const { violations, charges } = await server.ledger()
    assert.deepEqual(violations, [])
    assert.equal(charges - charged, load.answered)
  })
})

describe('WORKERS on Postgres and Redis', { skip: WITHOUT_POSTGRES || WITHOUT_REDIS }, () => {
  it('are restarted one by one: no request fails', async (t) => {
    const postgres = await startPostgres()
    t.after(() => postgres.close())
    const redis = await startRedis()
    t.after(() => redis.close())
    const server = await startFileGateway(t, {
      WORKERS: '2',
      DATABASE_URL: await postgres.createDatabase(),
      REDIS_URL: `redis://127.0.0.1:${redis.port}`,
    })
    const load = keepAliveLoad(t, server.gateway.url, ASKED, CALLERS)
    await restartOneByOne(server, load)
    await load.stop()
    assert.deepEqual(load.failures, [])
    const { violations, charges } = await server.ledger()
    assert.deepEqual(violations, [])
    assert.equal(charges, load.answered)
  })
})
