import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { createInterface } from 'node:readline'
import { describe, it, type TestContext } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { postgresUrl } from '../../stores/sql/support/postgres-database.ts'
import { databaseUrl } from '../../stores/sql/support/temporary-database.ts'
import { OWN_PROGRAM_FLAGS } from '../../support/own-program.ts'
import { WITHOUT_POSTGRES } from '../../support/postgres-server.ts'
import { startRedis, WITHOUT_REDIS } from '../../support/redis-server.ts'
import { answerJson, startUpstream } from '../../support/scripted-upstream.ts'
import { until } from '../../support/until.ts'

const PROGRAM = fileURLToPath(new URL('./own-handler-process.ts', import.meta.url))
const LEASE_MS = 2000

const BACKENDS = [
  { name: 'one SQLite file', open: databaseUrl, skip: false as const },
  { name: 'Postgres', open: () => postgresUrl(), skip: WITHOUT_POSTGRES },
  {
    name: 'Redis',
    open: async (t: TestContext) => {
      const redis = await startRedis()
      t.after(() => redis.close())
      return `redis://127.0.0.1:${redis.port}`
    },
    skip: WITHOUT_REDIS,
  },
]

/** The result that a caller sees: the answer, or that it broke off. */
interface Seen {
  readonly status: number
  readonly code: string | undefined
  readonly text: string
  readonly isWhole: boolean
}

async function startApp(t: TestContext, store: string, work: string) {
  const child = spawn(process.execPath, [...OWN_PROGRAM_FLAGS, PROGRAM, store, `${LEASE_MS}`, work], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  t.after(() => child.kill('SIGKILL'))
  const said = createInterface({ input: child.stdout })[Symbol.asyncIterator]()
  const url = `http://127.0.0.1:${(await said.next()).value}`
  const ask = async (path: string): Promise<Seen> => {
    const headers = { 'idempotency-key': 'k', 'content-type': 'application/json' }
    const response = await fetch(url + path, { method: 'POST', headers, body: '{}' })
    let text = ''
    let isWhole = true
    try {
      const decoder = new TextDecoder()
      for await (const piece of response.body ?? []) text += decoder.decode(piece as Uint8Array)
    } catch {
      isWhole = false
    }
    const code =
      response.status >= 400 ? (JSON.parse(text) as { error: { code: string } }).error.code : undefined
    return { status: response.status, code, text, isWhole }
  }
  return { child, ask }
}

describe('a process that stands still beyond the lease of a key, in a handler of the app', {
  concurrency: 3,
  timeout: 120_000,
}, () => {
  for (const { name, open, skip } of BACKENDS) {
    for (const path of ['/json', '/piped', '/streamed']) {
      it(`ends in an error, and the handler of the next owner ran once: ${path}, ${name}`, {
        skip,
      }, async (t) => {
        const finish: (() => void)[] = []
        const work = await startUpstream((res, _request, index) => {
          finish[index] = () => answerJson(res, 200, { run: index })
        })
        t.after(() => work.close())
        const store = await open(t)
        const [first, second] = [await startApp(t, store, work.url), await startApp(t, store, work.url)]
        const paused = first.ask(path)
        await until(() => work.requests.length === 1, 'the first handler')
        first.child.kill('SIGSTOP')
        finish[0]?.()
        const taking = (async () => {
          for (;;) {
            const seen = await second.ask(path)
            if (seen.code !== 'idempotency_key_in_use') return seen
            await sleep(50)
          }
        })()
        await until(() => work.requests.length === 2, 'the second handler')
        first.child.kill('SIGCONT')
        const fenced = await paused
        // A status that was sent cannot be taken back.
        if (path === '/json') assert.deepEqual([fenced.status, fenced.code], [409, 'idempotency_key_in_use'])
        else assert.equal(fenced.isWhole, false, fenced.text)
        assert.doesNotMatch(fenced.text, /the end/)
        finish[1]?.()
        const taken = await taking
        assert.ok(taken.status < 300 && taken.isWhole)
        assert.match(taken.text, /run\W+1/)
        for (const { ask } of [first, second])
          assert.equal((await ask(path)).code, 'idempotency_key_replayed')
        assert.equal(work.requests.length, 2, 'each handler ran once')
      })
    }
  }
})
