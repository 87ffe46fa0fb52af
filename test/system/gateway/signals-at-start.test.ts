import assert from 'node:assert/strict'
import { execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { rename, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, it, type TestContext } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { Client } from 'pg'
import { MIGRATIONS } from '../../../lib/stores/sql/driver/migrate.ts'
import { undoMigrations } from '../../../lib/stores/sql/index.ts'
import { sharedPostgres } from '../../stores/sql/postgres-database.ts'
import { open } from '../../stores/sql/temporary-database.ts'
import { GATEWAY_COMMAND, startGatewayProcess, temporaryFolder } from '../../support/gateway-process.ts'
import { WITHOUT_POSTGRES } from '../../support/postgres-server.ts'
import { until } from '../../support/until.ts'

/** Says when the process takes the signal. */
const PRELOAD = `let told = false; process.on('newListener', (name) => {
  if (name === 'SIGTERM' && !told) { told = true; setImmediate(() => console.log('armed')) } })`
/** From the loading of modules to a gateway that serves. */
const WAITS_MS = [0, 500, 1500]

function start(t: TestContext, databaseUrl: string, env: object = {}) {
  const preload = `--import=data:text/javascript,${encodeURIComponent(PRELOAD)}`
  const [node, ...args] = GATEWAY_COMMAND as [string, ...string[]]
  const { PATH, NODE_COMPILE_CACHE } = process.env
  const variables = {
    PATH,
    NODE_COMPILE_CACHE,
    PORT: '0',
    SHUTDOWN_NOTICE_MS: '100',
    DATABASE_URL: databaseUrl,
  }
  const child = spawn(node, [preload, ...args], {
    env: { ...variables, ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  t.after(() => child.kill('SIGKILL'))
  const said = { text: '' }
  for (const stream of [child.stdout, child.stderr])
    stream.setEncoding('utf8').on('data', (text: string) => {
      said.text += text
    })
  const exited = once(child, 'exit').then(([code, signal]) => ({ code, signal }))
  return { child, said, exited, says: (text: string) => until(() => said.text.includes(text), text, 60_000) }
}

for (const [name, env] of [
  ['one process', {}],
  ['workers', { WORKERS: '2' }],
] as const)
  describe(`a signal while ${name} start${'WORKERS' in env ? '' : 's'}`, () => {
    it('ends it with 0 in time, at any moment, and the next start serves', async (t) => {
      const folder = await temporaryFolder()
      t.after(() => folder.remove())
      for (const wait of WAITS_MS) {
        const url = `sqlite:${join(folder.path, `${wait}.db`)}`
        const { child, said, exited, says } = start(t, url, env)
        await says('armed')
        await sleep(wait)
        const at = performance.now()
        child.kill('SIGTERM')
        assert.deepEqual(await exited, { code: 0, signal: null }, `after ${wait} ms: ${said.text}`)
        assert.ok(performance.now() - at < 10_000)
        const db = await open(t, url)
        const rows = await db
          .selectFrom('kysely_migration' as never)
          .selectAll()
          .execute()
        assert.equal(rows.length, Object.keys(MIGRATIONS).length)
      }
      const next = await startGatewayProcess({ DATABASE_URL: `sqlite:${join(folder.path, '0.db')}`, ...env })
      await next.stop()
    })
  })

describe('a config file that is read at the start', () => {
  for (const [change, env] of [
    ['and changed before the gateway serves', { WORKERS: '1' }],
    ['and changed before one process serves', {}],
    ['before a SIGHUP', { WORKERS: '1' }],
    ['before a SIGHUP to one process', {}],
  ] as const)
    it(`${change}, is read again`, async (t) => {
      const folder = await temporaryFolder()
      t.after(() => folder.remove())
      const at = (name: string) => join(folder.path, name)
      const line = {
        id: 'one',
        provider: 'p',
        protocol: 'openai',
        baseUrl: 'http://127.0.0.1:9/v1',
        models: { chat: 'u' },
      }
      const config = { models: [{ id: 'chat', kind: 'chat' }], lines: [line] }
      // Who has read the pipe has read the config.
      execFileSync('mkfifo', [at('gateway.json')])
      const { child, said, exited, says } = start(t, `sqlite:${at('gateway.db')}`, {
        GATEWAY_CONFIG: at('gateway.json'),
        ...env,
      })
      await writeFile(at('gateway.json'), JSON.stringify(config))
      const isSignal = change.includes('SIGHUP')
      const next = isSignal
        ? config
        : { ...config, models: [...config.models, { id: 'later', kind: 'chat' }] }
      await writeFile(at('next'), JSON.stringify(next))
      await rename(at('next'), at('gateway.json'))
      if (isSignal) child.kill('SIGHUP')
      await says('config reloaded')
      assert.equal(said.text.split('config reloaded').length - 1, 1)
      child.kill('SIGTERM')
      assert.deepEqual(await exited, { code: 0, signal: null }, said.text)
    })
})

describe('migrations of a fleet that serves', { skip: WITHOUT_POSTGRES }, () => {
  it('wait for no lock for long, so that calls go on; a signal ends the wait, and nothing is half done', async (t) => {
    const url = await (await sharedPostgres()).createDatabase()
    await open(t, url)
    await undoMigrations(url, '0021-operators')
    const connect = async () => {
      const client = new Client({ connectionString: url })
      await client.connect()
      t.after(() => client.end())
      return client
    }
    const done = async () => (await traffic.query('select name from kysely_migration')).rows.length
    const [holder, traffic] = [await connect(), await connect()]
    const before = await done()
    // A long report: it only reads, but the next migration changes the table.
    await holder.query('begin; lock table charges in access share mode')
    let slowest = 0
    let running = true
    const calls = (async () => {
      for (let n = 0; running; n++) {
        const at = performance.now()
        await traffic.query(
          `insert into charges (request_id, account, amount, at) values ('req_${n}', 'acme', 1, 1)`,
        )
        slowest = Math.max(slowest, performance.now() - at)
        await sleep(10)
      }
    })()
    const waits = 'a migration waits for a lock that somebody holds'
    const first = start(t, url)
    await first.says(waits)
    first.child.kill('SIGTERM')
    assert.deepEqual(await first.exited, { code: 0, signal: null }, first.said.text)
    running = false
    await calls
    assert.equal(await done(), before, 'nothing is half done')
    running = true
    const second = start(t, url)
    await second.says(waits)
    assert.ok(slowest > 50 && slowest < 1000, `a call waited for ${slowest} ms`)
    await holder.query('commit')
    await second.says('is ready at')
    assert.equal(await done(), Object.keys(MIGRATIONS).length)
    second.child.kill('SIGTERM')
    assert.deepEqual(await second.exited, { code: 0, signal: null }, second.said.text)
  })
})
