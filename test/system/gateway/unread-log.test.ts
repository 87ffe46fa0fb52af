import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { describe, it, type TestContext } from 'node:test'
import { GATEWAY_COMMAND, temporaryFolder } from '../../support/gateway-process.ts'
import { until } from '../../support/until.ts'

/** More lines than a pipe and its reader hold. */
const CALLS = 2000
const AT_ONCE = 40
const SLOWLY_MS = 100

const WORKERS = [undefined, '2']

/** Starts a gateway, and lets it log more than its reader has read. */
async function startUnread(t: TestContext, workers: string | undefined) {
  const folder = await temporaryFolder()
  t.after(folder.remove)
  const { PATH, NODE_COMPILE_CACHE } = process.env
  const [program, ...given] = GATEWAY_COMMAND as [string, ...string[]]
  const gateway = spawn(program, given, {
    cwd: folder.path,
    env: {
      PATH,
      NODE_COMPILE_CACHE,
      PORT: '0',
      SHUTDOWN_NOTICE_MS: '250',
      ...(workers && { WORKERS: workers }),
    },
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  t.after(() => gateway.kill('SIGKILL'))
  let said = ''
  gateway.stdout.on('data', (text) => {
    said += text
  })
  const url = () => /ready at (http:\S+)\n/.exec(said)?.[1]
  await until(() => url() !== undefined, 'it is ready')
  gateway.stdout.pause()
  for (let i = 0; i < CALLS / AT_ONCE; i++)
    await Promise.all(
      Array.from({ length: AT_ONCE }, async () => {
        const headers = { authorization: 'Bearer none', 'x-request-id': 'x'.repeat(200) }
        const answer = await fetch(`${url()}/v1/models`, { headers })
        assert.equal(answer.status, 401)
        await answer.arrayBuffer()
      }),
    )
  return { gateway, said: () => said }
}

describe('a log that is read no more', () => {
  for (const workers of WORKERS)
    it(`does not keep ${workers ?? 'a single'} process${workers ? 'es' : ''} from ending`, async (t) => {
      const { gateway } = await startUnread(t, workers)
      gateway.kill('SIGTERM')
      await once(gateway, 'exit', { signal: AbortSignal.timeout(45_000) })
    })
})

describe('a log that is read slowly', () => {
  for (const workers of WORKERS)
    it(`is written whole before ${workers ?? 'a single'} process${workers ? 'es' : ''} end`, async (t) => {
      const { gateway, said } = await startUnread(t, workers)
      gateway.kill('SIGTERM')
      const ended = once(gateway, 'close')
      // One buffer at a time, for longer than a reader may stand still.
      const reading = setInterval(() => {
        gateway.stdout.once('data', () => void gateway.stdout.pause()).resume()
      }, SLOWLY_MS)
      t.after(() => clearInterval(reading))
      assert.deepEqual(await ended, [0, null])
      assert.equal(said().match(/"path":"\/v1\/models"[^\n]*"msg":"call"}\n/g)?.length, CALLS)
    })
})
