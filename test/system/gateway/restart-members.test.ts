import assert from 'node:assert/strict'
import { it } from 'node:test'
import { until, untilAsync } from '../../support/until.ts'
import { startFileGateway } from './file-gateway.ts'

const BEFORE = 4_000_000
const AFTER = 2000

it('a worker that replaces a killed one has the members of the others that need a restart', async (t) => {
  const server = await startFileGateway(t, { WORKERS: '2' }, { bodyLimitBytes: BEFORE })
  const { gateway, config } = server
  const headers = { authorization: 'Bearer sk-demo', 'content-type': 'application/json', connection: 'close' }
  /** Sends on new connections until two processes have answered, or three for a new one; returns the statuses. */
  const statuses = async (pids: Set<number>, count: number) => {
    const since = gateway.stdout.length
    const found = new Set<number>()
    await untilAsync(
      async () => {
        const body = JSON.stringify({
          model: 'chat-small',
          messages: [{ role: 'user', content: 'x'.repeat(AFTER) }],
        })
        const answer = await fetch(`${gateway.url}/v1/chat/completions`, {
          method: 'POST',
          headers,
          body,
        }).catch(() => {})
        if (answer) found.add(answer.status)
        await answer?.arrayBuffer()
        for (const [, pid] of gateway.stdout.slice(since).matchAll(/"pid":(\d+),[^\n]*"msg":"call"/g))
          pids.add(Number(pid))
        return pids.size >= count
      },
      'all answer',
      60_000,
    )
    return [...found]
  }
  const says = (message: string) =>
    until(() => gateway.stdout.includes(`"msg":"${message}"`), message, 60_000)
  const first = new Set<number>()
  assert.deepEqual(await statuses(first, 2), [200])
  await server.write({ ...config, bodyLimitBytes: AFTER, routing: { maxAttempts: 2 } })
  await says('config reloaded')
  const [killed] = first
  process.kill(killed as number, 'SIGKILL')
  await says('a worker died')
  assert.deepEqual(await statuses(first, 3), [200])
  gateway.kill('SIGUSR2')
  await says('workers restarted')
  assert.deepEqual(await statuses(new Set(), 2), [413])
})
