import assert from 'node:assert/strict'
import { describe, it, type TestContext } from 'node:test'
import { until, untilAsync } from '../../support/until.ts'
import { type FileGateway, startFileGateway } from './file-gateway.ts'
import { askedChat, keepAliveLoad } from './keep-alive-load.ts'

type Signals = readonly NodeJS.Signals[]

/** By the number of workers. */
const CASES: readonly (readonly [workers: string | undefined, signals: readonly Signals[]])[] = [
  [
    undefined,
    [
      ['SIGHUP', 'SIGTERM'],
      ['SIGTERM', 'SIGHUP'],
    ],
  ],
  [
    '2',
    [
      ['SIGTERM', 'SIGHUP'],
      ['SIGUSR2', 'SIGHUP', 'SIGTERM'],
    ],
  ],
]

/** Adds a model, which says that a reload was honoured. */
async function write(server: FileGateway): Promise<void> {
  await server.write({ ...server.config, models: [...server.config.models, { id: 'later', kind: 'chat' }] })
}

async function serves({ gateway }: FileGateway): Promise<boolean> {
  const headers = { authorization: 'Bearer sk-demo', connection: 'close' }
  const answer = await fetch(`${gateway.url}/v1/models/later`, { headers })
  await answer.arrayBuffer()
  return answer.status === 200
}

for (const [WORKERS, all] of CASES)
  describe(`signals at once to ${WORKERS ? 'workers' : 'one process'}`, () => {
    const start = (t: TestContext) => startFileGateway(t, { WORKERS })

    for (const signals of all)
      it(`${signals.join(', ')}: no request fails, and it ends with 0`, async (t) => {
        const server = await start(t)
        const load = keepAliveLoad(t, server.gateway.url, [askedChat()], 4)
        await load.more(10)
        await write(server)
        for (const signal of signals) server.gateway.kill(signal)
        await until(() => server.gateway.stdout.includes('"msg":"draining"'), 'the drain', 30_000)
        await load.stop()
        const { code, stderr } = await server.gateway.exited
        assert.deepEqual([code, stderr], [0, ''])
        assert.deepEqual(load.failures, [])
      })

    it('SIGHUP during a reload or a roll: all that serve have the last config', async (t) => {
      const server = await start(t)
      if (WORKERS) server.gateway.kill('SIGUSR2')
      server.gateway.kill('SIGHUP')
      await write(server)
      server.gateway.kill('SIGHUP')
      const everywhere = async () =>
        (await Promise.all(Array.from({ length: 8 }, () => serves(server)))).every(Boolean)
      await untilAsync(everywhere, 'the later model')
      if (WORKERS) {
        await until(() => server.gateway.stdout.includes('"msg":"workers restarted"'), 'the roll', 60_000)
        assert.ok(await everywhere(), 'in the workers that came')
      }
      server.gateway.kill('SIGTERM')
      assert.equal((await server.gateway.exited).code, 0)
    })
  })

describe('SIGUSR2 during a roll', () => {
  it('replaces all once more, also those that came before it', async (t) => {
    const { gateway, admin } = await startFileGateway(t, { WORKERS: '2' })
    const pids = async () => {
      const { workers } = await admin<{ workers: { pid: number }[] }>('/lines/one')
      return workers.map(({ pid }) => pid)
    }
    await untilAsync(async () => (await pids()).length === 2, 'both workers')
    const old = await pids()
    gateway.kill('SIGUSR2')
    await untilAsync(async () => (await pids()).some((pid) => !old.includes(pid)), 'the first new worker')
    const before = await pids()
    gateway.kill('SIGUSR2')
    const rolls = () => gateway.stdout.split('"msg":"workers restarted"').length - 1
    await until(() => rolls() === 2, 'the second roll', 60_000)
    await untilAsync(
      async () => !(await pids()).some((pid) => before.includes(pid)),
      'the end of the old',
      60_000,
    )
  })
})
