import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { DatabaseSync } from 'node:sqlite'
import { describe, it, type TestContext } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { chat, GATEWAY_COMMAND, lookUp, post, startGatewayProcess } from '../../support/gateway-process.ts'
import { startPostgres, WITHOUT_POSTGRES } from '../../support/postgres-server.ts'
import { until, untilAsync } from '../../support/until.ts'
import { type FileGateway, startFileGateway } from './file-gateway.ts'
import { askedChat, keepAliveLoad, type Load } from './keep-alive-load.ts'

/** The file has more than a megabyte then. */
const KEYS = 12_000
const ACCOUNTS = Array.from({ length: 3000 }, (_, i) => ({ id: `account-${i}`, balance: '10' }))

const keysTo = (count: number) => [
  { id: 'key', account: 'account-0', secret: 'sk-demo' },
  ...Array.from({ length: count }, (_, i) => ({
    id: `key-${i}`,
    account: `account-${i % ACCOUNTS.length}`,
    secret: `sk-secret-of-a-key-${i}`,
  })),
]
const MODEL = { id: 'chat-small', kind: 'chat', maxOutputTokens: 100 }
const members = (count: number, perRequest: string) => ({
  accounts: ACCOUNTS,
  keys: keysTo(count),
  models: [{ ...MODEL, price: { perRequest } }],
})

const authorization = (i: number) => ({ authorization: `Bearer sk-secret-of-a-key-${i}` })

function loadOfTwoTenants(t: TestContext, { gateway }: FileGateway): Load {
  const other = askedChat('chat-small', true)
  const headers = { ...other.headers, ...authorization(1) }
  return keepAliveLoad(t, gateway.url, [askedChat(), { ...other, headers }])
}

async function assertNoDrift(server: FileGateway): Promise<void> {
  let path: string | undefined = '/drift?limit=100'
  while (path !== undefined) {
    const page: { data: unknown[]; next_cursor: string | null } = await server.admin(path)
    assert.deepEqual(page.data, [])
    path = page.next_cursor === null ? undefined : `/drift?limit=100&cursor=${page.next_cursor}`
  }
}

function databaseOf({ env }: FileGateway): string {
  return `${env.DATABASE_URL}`.slice('sqlite:'.length)
}

/** Returns how many rows a table has; 0 while it is not there. */
function countIn(file: string, table: string): number {
  if (!existsSync(file)) return 0
  const db = new DatabaseSync(file, { readOnly: true })
  try {
    return Number(db.prepare(`select count(*) as count from ${table}`).get()?.count)
  } catch {
    return 0
  } finally {
    db.close()
  }
}

/** Resolves when the gateway has taken over accounts and keys so often. */
function reloads({ gateway }: FileGateway, count: number): Promise<void> {
  const done = () => gateway.logged.filter(({ msg }) => msg === 'config reloaded').length
  return until(() => done() >= count, 'the reload', 60_000)
}

/** Starts it, and changes a price and a key while calls run. */
async function reloadUnderLoad(t: TestContext, env: Record<string, string> = {}): Promise<FileGateway> {
  const server = await startFileGateway(t, env, members(KEYS, '0.001'))
  const { gateway } = server
  const last = await post(gateway.url, chat(), authorization(KEYS - 1))
  assert.equal(last.status, 200, await last.text())
  const load = loadOfTwoTenants(t, server)
  await load.more(10)
  await server.write({ ...server.config, ...members(KEYS + 1, '0.002') })
  await reloads(server, 1)
  await load.more(10)
  await load.stop()
  assert.deepEqual(load.failures, [])
  return server
}

async function chargeOf({ gateway }: FileGateway, key: number): Promise<unknown> {
  const answer = await post(gateway.url, chat(), authorization(key))
  assert.equal(answer.status, 200, await answer.text())
  const secret = `sk-secret-of-a-key-${key}`
  const entry = await lookUp(gateway.url, answer.headers.get('x-request-id'), secret)
  return entry.billing?.charged
}

describe('a config of many accounts and keys', () => {
  it('is reloaded without a refused call: its new price and its new key count, and nothing else has changed', async (t) => {
    const server = await reloadUnderLoad(t)
    assert.equal(await chargeOf(server, 5), '0.002')
    assert.equal(await chargeOf(server, KEYS), '0.002')
    assert.deepEqual((await server.ledger()).violations, [])
    await assertNoDrift(server)
  })

  it('that is broken changes nothing, and its fault names the key', async (t) => {
    const server = await startFileGateway(t, {}, members(KEYS, '0.001'))
    const { gateway, config } = server
    const keys = [...keysTo(KEYS), { id: 'odd', account: 'nobody', secret: 'sk-odd' }]
    await server.write({ ...config, ...members(KEYS, '0.002'), keys })
    const isTold = () =>
      gateway.logged.some(({ fault }) => `${fault}`.startsWith(`keys[${KEYS + 1}].account: `))
    await until(isTold, 'the fault', 60_000)
    assert.equal(await chargeOf(server, 5), '0.001')
  })

  it('reaches each worker', async (t) => {
    const server = await reloadUnderLoad(t, { WORKERS: '2' })
    // Each takes over what the primary process has read, at its own time.
    let newInTurn = 0
    await untilAsync(async () => {
      newInTurn = (await chargeOf(server, 5)) === '0.002' ? newInTurn + 1 : 0
      return newInTurn === 12
    }, 'the new price in both')
    assert.deepEqual((await server.ledger()).violations, [])
  })

  it('is reloaded so with Postgres, too', { skip: WITHOUT_POSTGRES }, async (t) => {
    const postgres = await startPostgres()
    t.after(() => postgres.close())
    const server = await reloadUnderLoad(t, { DATABASE_URL: await postgres.createDatabase() })
    assert.equal(await chargeOf(server, KEYS), '0.002')
  })

  it('is reloaded five times in three seconds: the last one counts, and no call is refused', async (t) => {
    const server = await startFileGateway(t, {}, members(KEYS, '0.001'))
    const load = loadOfTwoTenants(t, server)
    for (let i = 1; i <= 5; i++) {
      await server.write({ ...server.config, ...members(KEYS + i, `0.00${i + 1}`) })
      server.gateway.kill('SIGHUP')
      await sleep(600)
    }
    await untilAsync(async () => (await chargeOf(server, 5)) === '0.006', 'the last price', 60_000)
    await untilAsync(
      async () => (await post(server.gateway.url, chat(), authorization(KEYS + 4))).status === 200,
      'the last key',
      60_000,
    )
    await load.more(10)
    await load.stop()
    assert.deepEqual(load.failures, [])
    assert.equal(await chargeOf(server, 5), '0.006')
    assert.deepEqual((await server.ledger()).violations, [])
  })

  it('is taken over by itself once a database that was locked meanwhile can be written', async (t) => {
    const server = await startFileGateway(t, {}, members(KEYS, '0.001'))
    const other = new DatabaseSync(databaseOf(server))
    t.after(() => other.close())
    other.exec('begin immediate')
    const next = members(KEYS + 1, '0.002')
    await server.write({ ...server.config, ...next, models: [...next.models, { id: 'new', kind: 'chat' }] })
    await untilAsync(
      async () =>
        (await server.admin<{ data: { id: string }[] }>('/models')).data.some(({ id }) => id === 'new'),
      'the new model',
      60_000,
    )
    await sleep(5000)
    other.exec('rollback')
    await untilAsync(
      async () => (await post(server.gateway.url, chat(), authorization(KEYS))).status === 200,
      'the new key',
      60_000,
    )
    assert.equal(await chargeOf(server, KEYS), '0.002')
    await assertNoDrift(server)
  })

  it('is added whole by the next start if the first was killed in the middle', async (t) => {
    const server = await startFileGateway(t)
    const { env, gateway } = server
    await gateway.stop()
    await server.write({ ...server.config, ...members(KEYS, '0.001') })
    const DATABASE_URL = `${env.DATABASE_URL}-2`
    const [program, ...options] = GATEWAY_COMMAND as [string, ...string[]]
    const killed = spawn(program, options, {
      env: { ...process.env, PORT: '0', ...env, DATABASE_URL },
      stdio: 'ignore',
    })
    const ended = once(killed, 'exit')
    const file = DATABASE_URL.slice('sqlite:'.length)
    await until(() => countIn(file, 'keys') > 1000, 'some keys', 60_000)
    killed.kill('SIGKILL')
    await ended
    assert.ok(countIn(file, 'keys') < KEYS)
    const next = await startGatewayProcess({ ...env, DATABASE_URL })
    t.after(() => next.stop())
    assert.equal(countIn(file, 'keys'), KEYS + 1)
    assert.equal(countIn(file, 'deposits'), ACCOUNTS.length)
    for (const key of [0, KEYS - 1])
      assert.equal((await post(next.url, chat(), authorization(key))).status, 200)
  })

  it('that rules is taken over by two processes at once: what it no longer names is refused by both', {
    skip: WITHOUT_POSTGRES,
  }, async (t) => {
    const postgres = await startPostgres()
    t.after(() => postgres.close())
    const config = { authority: 'config', ...members(KEYS, '0.001') }
    const server = await startFileGateway(t, { DATABASE_URL: await postgres.createDatabase() }, config)
    const second = await startGatewayProcess(server.env)
    t.after(() => second.stop())
    const both: readonly FileGateway[] = [server, { ...server, gateway: second }]
    const loads = both.map((each) => loadOfTwoTenants(t, each))
    const next = members(KEYS, '0.002')
    await server.write({ ...server.config, ...next, keys: next.keys.filter(({ id }) => id !== 'key-7') })
    for (const each of both) await reloads(each, 1)
    for (const load of loads) {
      await load.more(10)
      await load.stop()
      assert.deepEqual(load.failures, [])
    }
    for (const each of both) {
      assert.equal((await post(each.gateway.url, chat(), authorization(7))).status, 403)
      assert.equal(await chargeOf(each, 8), '0.002')
    }
    await assertNoDrift(server)
    assert.deepEqual((await server.ledger()).violations, [])
  })
})
