import assert from 'node:assert/strict'
import { execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { rename, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, it, type TestContext } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { MIGRATIONS } from '../../../lib/stores/sql/driver/migrate.ts'
import { open } from '../../stores/sql/support/temporary-database.ts'
import { GATEWAY_COMMAND, startGatewayProcess, temporaryFolder } from '../../support/gateway-process.ts'
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
        assert.ok(performance.now() - at < 45_000)
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
      // A reader of the pipe has read the config, so the test knows when that is.
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
