import assert from 'node:assert/strict'
import { describe, it, type TestContext } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { Cluster, Redis } from 'ioredis'
import { sql } from 'kysely'
import { noAnswerReason } from '../../../lib/core/errors/index.ts'
import { type Database, openDatabase } from '../../../lib/stores/sql/index.ts'
import { startPostgresPair } from '../../support/postgres-pair.ts'
import { startPostgres, WITHOUT_POSTGRES } from '../../support/postgres-server.ts'
import { startRedisCluster } from '../../support/redis-cluster.ts'
import { startRedis, WITHOUT_REDIS } from '../../support/redis-server.ts'
import { untilAsync } from '../../support/until.ts'

const CALLERS = 9

/** Callers of a store that never stop, and the errors that they got. */
class Callers {
  readonly errors: unknown[] = []
  /** The answers so far. */
  answers = 0
  #isOver = false
  readonly #running: Promise<void>[]

  constructor(asks: readonly (() => Promise<unknown>)[]) {
    this.#running = Array.from({ length: CALLERS }, (_, i) =>
      this.#call(asks[i % asks.length] as () => Promise<unknown>),
    )
  }

  async #call(ask: () => Promise<unknown>): Promise<void> {
    while (!this.#isOver) {
      await ask().then(
        () => this.answers++,
        (error: unknown) => this.errors.push(error),
      )
      // Calls that fail at once would keep the others from their turn.
      await sleep(2)
    }
  }

  /** Resolves when each of them has surely had an answer from now on. */
  async answered(): Promise<void> {
    const enough = this.answers + 2 * CALLERS
    await untilAsync(async () => this.answers >= enough, 'answers')
  }

  /** Resolves when as many of them as there are have got an error from now on. */
  async refused(): Promise<void> {
    const enough = this.errors.length + CALLERS
    await untilAsync(async () => this.errors.length >= enough, 'errors')
  }

  async end(): Promise<void> {
    this.#isOver = true
    await Promise.all(this.#running)
  }

  /** Asserts that there were errors, and that each says that the store gave no answer. */
  assertExpected(): void {
    assert.ok(this.errors.length > 0)
    const unexpected = this.errors.filter((error) => noAnswerReason(error) === undefined)
    assert.deepEqual([...new Set(unexpected.map((error) => `${(error as Error)?.stack}`))], [])
  }
}

/** Statements alone, in a transaction, and in one that takes its time. */
function callersOf(db: Database): Callers {
  const ask = () => sql`select 1`.execute(db)
  const write = () =>
    db.transaction().execute(async (trx) => {
      await trx.updateTable('accounts').set({ rpm: 1n }).where('id', '=', 'nobody').execute()
      await trx.selectFrom('accounts').select('id').execute()
    })
  const wait = () => db.transaction().execute(async (trx) => sql`select pg_sleep(0.05)`.execute(trx))
  return new Callers([ask, write, wait])
}

const QUICK = { connectTimeoutMs: 1000, statementTimeoutMs: 1000, poolSize: 6 }

async function openCallers(t: TestContext, url: string): Promise<{ db: Database; callers: Callers }> {
  const db = await openDatabase(url, QUICK)
  const callers = callersOf(db)
  t.after(async () => {
    await callers.end()
    await db.destroy()
  })
  await callers.answered()
  return { db, callers }
}

describe('callers of a Postgres get no error but expected ones while', { skip: WITHOUT_POSTGRES }, () => {
  it('it restarts, in good order and not, and hangs', async (t) => {
    const server = await startPostgres()
    t.after(() => server.close())
    const { callers } = await openCallers(t, await server.createDatabase())
    for (const how of ['stop', 'kill'] as const) {
      await server[how]()
      await callers.refused()
      await server.start()
      await callers.answered()
    }
    server.freeze()
    await callers.refused()
    server.thaw()
    await callers.answered()
    await callers.end()
    callers.assertExpected()
  })

  it('its standby takes over', async (t) => {
    const pair = await startPostgresPair()
    t.after(() => pair.close())
    const { callers } = await openCallers(t, pair.url)
    await pair.killPrimary()
    await callers.refused()
    await pair.promote()
    await callers.answered()
    await callers.end()
    callers.assertExpected()
    assert.ok(callers.errors.some((error) => /is a standby/.test(`${error}`)))
  })

  it('it ends sessions, and takes no more of them', async (t) => {
    const server = await startPostgres()
    t.after(() => server.close())
    const url = await server.createDatabase()
    const { callers } = await openCallers(t, url)
    const others = `from pg_stat_activity where pid <> pg_backend_pid() and datname = '${new URL(url).pathname.slice(1)}'`
    for (let i = 0; i < 5; i++) {
      await server.query(`select pg_cancel_backend(pid) ${others}`)
      await server.query(`select pg_terminate_backend(pid) ${others}`)
      await callers.answered()
    }
    await server.query('alter role postgres connection limit 0')
    await callers.end()
    callers.assertExpected()
  })

  it('the pool ends', async (t) => {
    const server = await startPostgres()
    t.after(() => server.close())
    const db = await openDatabase(await server.createDatabase(), QUICK)
    const callers = callersOf(db)
    await callers.answered()
    await db.destroy()
    await callers.refused()
    await callers.end()
    callers.assertExpected()
  })
})

const asks = (redis: Redis | Cluster) => {
  redis.defineCommand('countedUp', { numberOfKeys: 1, lua: `return redis.call('INCR', KEYS[1])` })
  const { countedUp } = redis as unknown as { countedUp(key: string): Promise<number> }
  let turn = 0
  const key = () => `key:${turn++ % 50}`
  return new Callers([
    () => redis.incr(key()),
    () => countedUp.call(redis, key()),
    () => redis.multi().get(key()).exec(),
  ])
}

describe('callers of a Redis get no error but expected ones while', { skip: WITHOUT_REDIS }, () => {
  for (const maxRetriesPerRequest of [0, 20, null]) {
    it(`it restarts, hangs, and becomes a replica, with maxRetriesPerRequest ${maxRetriesPerRequest}`, async (t) => {
      const server = await startRedis()
      const successor = await startRedis()
      const redis = new Redis(server.port, '127.0.0.1', {
        maxRetriesPerRequest,
        retryStrategy: () => 20,
        socketTimeout: 300,
        commandTimeout: 1000,
      })
      redis.on('error', () => {})
      const callers = asks(redis)
      t.after(async () => {
        redis.disconnect()
        await callers.end()
        await Promise.all([server.close(), successor.close()])
      })
      await callers.answered()
      await server.kill()
      await callers.refused()
      await server.restart()
      await callers.answered()
      server.pause()
      await callers.refused()
      server.resume()
      await callers.answered()
      await redis.call('REPLICAOF', '127.0.0.1', `${successor.port}`)
      await callers.refused()
      redis.disconnect()
      await callers.refused()
      await callers.end()
      callers.assertExpected()
    })
  }

  it('a slot of a cluster moves, and its master is replaced', async (t) => {
    const cluster = await startRedisCluster()
    const hosts = cluster.url.replace('redis+cluster://', '').split(',')
    const redis = new Cluster(hosts, { clusterRetryStrategy: () => 20, redisOptions: { socketTimeout: 300 } })
    redis.on('error', () => {})
    t.after(() => cluster.close())
    const callers = asks(redis)
    await callers.answered()
    await cluster.moveSlot('key:7')
    await callers.answered()
    await cluster.kill(await cluster.masterOf('key:1'))
    await callers.refused()
    // After its end a client of a cluster leaves some commands without an answer, so that their callers would never end.
    redis.disconnect()
    callers.assertExpected()
  })
})
