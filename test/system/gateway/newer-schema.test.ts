import assert from 'node:assert/strict'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, it, type TestContext } from 'node:test'
import { sql } from 'kysely'
import { parseAmount } from '../../../lib/core/catalog/index.ts'
import { MIGRATIONS } from '../../../lib/stores/sql/driver/migrate.ts'
import { SqlCallStore } from '../../../lib/stores/sql/index.ts'
import { entryAt } from '../../contracts/call-store.ts'
import { configWith } from '../../core/config/config.ts'
import { BACKENDS } from '../../stores/sql/support/postgres-database.ts'
import { open } from '../../stores/sql/support/temporary-database.ts'
import { jsonOf } from '../../support/answer-bodies.ts'
import {
  chat,
  type Environment,
  GATEWAY_COMMAND,
  type GatewayProcess,
  lookUp,
  post,
  runProgram,
  startGatewayProcess,
  temporaryFolder,
} from '../../support/gateway-process.ts'

const ADMIN_TOKEN = 'admin-of-the-tests'
const LATER = '9999-later'

/** Does to a database what a newer version may do: columns, an index and a table more. */
async function addTo(t: TestContext, url: string): Promise<void> {
  const db = await open(t, url)
  const named = (await db.introspection.getTables()).map(({ name }) => name)
  // A partition has the columns of its table.
  const tables = named.filter((name) => !/_(first|default|\d{8})$/.test(name))
  assert.ok(tables.length > 15)
  for (const table of tables)
    await sql`alter table ${sql.table(table)} add column later_addition text`.execute(db)
  await sql`create index later_index on calls (account, later_addition)`.execute(db)
  await sql`create table later_things (id text primary key, account text not null)`.execute(db)
  await sql`insert into kysely_migration (name, timestamp) values (${LATER}, '2099-01-01')`.execute(db)
}

async function start(t: TestContext, env: Environment): Promise<GatewayProcess> {
  const gateway = await startGatewayProcess({ ADMIN_TOKEN, ...env })
  t.after(() => gateway.stop())
  return gateway
}

/** Uses all that is kept: charges, entries, claims, keys, switches, tickets. Returns what its call was charged. */
async function assertServes({ url }: GatewayProcess, run: string): Promise<bigint> {
  const key = { 'idempotency-key': run }
  const first = await post(url, chat(), key)
  assert.equal(first.status, 200, await first.text())
  const again = await post(url, chat(), key)
  assert.equal(again.status, 409)
  await again.arrayBuffer()
  const entry = await lookUp(url, first.headers.get('x-request-id'))
  assert.ok(Number(entry.billing?.charged) > 0)
  const admin = async (method: string, path: string, body?: object) => {
    const headers = { authorization: `Bearer ${ADMIN_TOKEN}`, 'content-type': 'application/json' }
    const res = await fetch(`${url}/admin${path}`, {
      method,
      headers,
      ...(body && { body: JSON.stringify(body) }),
    })
    assert.ok(res.ok, `${method} ${path}: ${res.status} ${await res.clone().text()}`)
    return jsonOf<{ id: string; secret: string; violations: unknown[] }>(res)
  }
  const account = await admin('POST', '/accounts', { id: `of-${run}` })
  await admin('POST', `/accounts/${account.id}/deposits`, { amount: '1', reference: run })
  const { secret } = await admin('POST', '/keys', { account: account.id })
  const foreign = await fetch(`${url}/v1/calls/${entry.id}`, {
    headers: { authorization: `Bearer ${secret}` },
  })
  assert.equal(foreign.status, 404)
  await foreign.arrayBuffer()
  await admin('GET', '/calls?limit=5')
  await admin('PATCH', '/lines/demo-us', { enabled: true })
  assert.deepEqual((await admin('GET', '/ledger/check')).violations, [])
  return parseAmount(entry.billing?.charged ?? '')
}

/** Returns what the account of the demo was charged today, as a process sums it up. */
async function usageOf({ url }: GatewayProcess): Promise<bigint> {
  const today = new Date(Date.now() - 86_400_000).toISOString().slice(0, 10)
  const response = await fetch(`${url}/admin/usage?from=${today}&group_by=account&account=demo`, {
    headers: { authorization: `Bearer ${ADMIN_TOKEN}` },
  })
  const { data } = await jsonOf<{ data: { charged: string }[] }>(response)
  return data.reduce((sum, { charged }) => sum + parseAmount(charged), 0n)
}

it('the command migrates, and reports what it cannot undo', async (t) => {
  const folder = await temporaryFolder()
  t.after(() => folder.remove())
  const migrate = (url: string, ...args: string[]) =>
    runProgram([...GATEWAY_COMMAND, 'migrate', ...args], process.cwd(), { DATABASE_URL: url })
  const url = `sqlite:${join(folder.path, 'gateway.db')}`
  const last = Object.keys(MIGRATIONS).at(-1) ?? ''
  assert.match((await migrate(url)).stdout, /^the database is up to date\n$/)
  assert.match((await migrate(url, '--down-to', last)).stdout, /nothing to undo/)
  const faults: readonly (readonly [string, string, RegExp])[] = [
    [url, 'nonsense', /^migrate: there is no migration "nonsense"/],
    ['memory:', '0001-initial', /^DATABASE_URL: "memory:" has no tables to migrate\n$/],
  ]
  for (const [database, name, fault] of faults) {
    const { code, stderr, stdout } = await migrate(database, '--down-to', name)
    assert.deepEqual([code, stdout], [1, ''])
    assert.match(stderr, fault)
  }
  const gateway = await start(t, { DATABASE_URL: url })
  await assertServes(gateway, 'up-again')
})

it('the command deletes what is too old, as the config says', async (t) => {
  const folder = await temporaryFolder()
  t.after(() => folder.remove())
  const env = { DATABASE_URL: `sqlite:${join(folder.path, 'gateway.db')}` }
  const config = join(folder.path, 'gateway.json')
  const prune = (...args: string[]) => runProgram([...GATEWAY_COMMAND, 'prune', ...args], folder.path, env)
  await writeFile(config, JSON.stringify(configWith({ retention: { calls: '1h' } })))
  const db = await open(t, env.DATABASE_URL)
  const store = new SqlCallStore(db)
  const kept = entryAt(Date.now())
  await store.append([entryAt(Date.now() - 2 * 3_600_000), kept])
  const { code, stdout, stderr } = await prune('--config', config)
  assert.deepEqual([code, stdout], [0, 'deleted: 1 calls, 0 charges\n'], stderr)
  assert.deepEqual((await store.list({ limit: 5 })).entries, [kept])
  assert.match((await prune()).stderr, /^prune: give it the config/)
})

for (const { name, url: databaseUrl, skip } of BACKENDS) {
  describe(`a newer version's database in ${name}`, { skip }, () => {
    it('is served by processes that meet it while they run, and by those that start on it', async (t) => {
      const folder = await temporaryFolder()
      t.after(() => folder.remove())
      const url = name === 'SQLite' ? `sqlite:${join(folder.path, 'gateway.db')}` : await databaseUrl(t)
      const running = await start(t, { DATABASE_URL: url })
      let charged = await assertServes(running, 'before')
      await addTo(t, url)
      charged += await assertServes(running, 'while-running')
      assert.equal(await usageOf(running), charged)
      assert.deepEqual(
        running.logged.filter(({ level }) => Number(level) > 30),
        [],
      )
      const workers = await start(t, { DATABASE_URL: url, WORKERS: '2' })
      charged += await assertServes(workers, 'started-later')
      charged += await assertServes(running, 'beside-them')
      // At once, in processes of either time.
      for (const each of [running, workers]) assert.equal(await usageOf(each), charged)
      const warned = () =>
        // That SQLite has one writer is another warning.
        workers.logged.filter(({ level, workers }) => Number(level) > 30 && workers === undefined)
      for (const line of warned()) assert.deepEqual([line.level, line.migrations], [40, [LATER]])
      const pids = warned().map(({ pid }) => pid)
      assert.ok(pids.length > 0 && new Set(pids).size === pids.length, 'once in each process')
      workers.kill('SIGTERM')
      running.kill('SIGTERM')
      assert.deepEqual([(await workers.exited).code, (await running.exited).code], [0, 0])
    })
  })
}
