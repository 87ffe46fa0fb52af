import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { describe, it } from 'node:test'
import { GATEWAY_COMMAND, temporaryFolder } from '../../support/gateway-process.ts'
import { until } from '../../support/until.ts'

/** More lines than a pipe and its reader hold. */
const CALLS = 2000
const AT_ONCE = 40

describe('a log that is read no more', () => {
  for (const workers of [undefined, '2'])
    it(`does not keep ${workers ?? 'a single'} process${workers ? 'es' : ''} from ending`, async (t) => {
      const folder = await temporaryFolder()
      t.after(folder.remove)
      const [program, ...given] = GATEWAY_COMMAND as [string, ...string[]]
      const gateway = spawn(program, given, {
        cwd: folder.path,
        env: {
          PATH: process.env.PATH,
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
      gateway.kill('SIGTERM')
      await once(gateway, 'exit', { signal: AbortSignal.timeout(10_000) })
    })
})
