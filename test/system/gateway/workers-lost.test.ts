import assert from 'node:assert/strict'
import { it } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { chat, post } from '../../support/gateway-process.ts'
import { untilAsync } from '../../support/until.ts'
import { startFileGateway } from './file-gateway.ts'

it('a worker that dies with a question on its way affects no other', { timeout: 180_000 }, async (t) => {
  const { gateway, config, write } = await startFileGateway(t, { WORKERS: '1' })
  const worker = Number(gateway.logged.find(({ pid }) => pid !== gateway.pid)?.pid)
  await write({
    ...config,
    keys: [{ id: 'limited', account: 'demo', secret: 'sk-limited', limits: { rpm: 10_000 } }],
  })
  const served = () =>
    post(gateway.url, chat(), { authorization: 'Bearer sk-limited' }).then(
      ({ status }) => status === 200,
      () => false,
    )
  await untilAsync(served, 'the limited key is known')

  // The primary process reads what it is asked only when nobody is there for the answer any more.
  gateway.kill('SIGSTOP')
  assert.ok(await served(), 'limits were counted without an answer')
  process.kill(worker, 'SIGKILL')
  await sleep(500)
  gateway.kill('SIGCONT')

  await untilAsync(served, 'another worker serves', 30_000)
  assert.equal(gateway.stderr, '')
  gateway.kill('SIGTERM')
  assert.equal((await gateway.exited).code, 0)
})
