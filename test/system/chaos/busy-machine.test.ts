import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { availableParallelism } from 'node:os'
import { join } from 'node:path'
import { it } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { temporaryFolder } from '../../support/gateway-process.ts'
import { chatAnswer } from '../../support/scripted-upstream.ts'
import { paidGateways, pay } from './paid-gateways.ts'
import { steadyLoad } from './steady-load.ts'

const BUSY_MS = 6000

it('a gateway on SQLite refuses no call on a busy machine, and its log has no store that is away', {
  timeout: 240_000,
}, async (t) => {
  const folder = await temporaryFolder()
  t.after(() => folder.remove())
  const world = await paidGateways(
    t,
    `sqlite:${join(folder.path, 'gateway.db')}`,
    {
      accounts: [{ id: 'acme', balance: '1000' }],
      keys: [{ id: 'acme', account: 'acme' }],
      price: { perRequest: '0.01' },
    },
    (res) => chatAnswer(res),
  )
  const gateway = await world.start()
  const burners = Array.from({ length: 5 * availableParallelism() }, () =>
    spawn('sh', ['-c', 'while :; do :; done'], { stdio: 'ignore' }),
  )
  const endBurners = () => {
    for (const burner of burners) burner.kill('SIGKILL')
  }
  t.after(endBurners)
  const over = sleep(BUSY_MS).then(endBurners)
  let keyed = 0
  const withKeys = async (): Promise<(number | undefined)[]> => {
    const statuses: (number | undefined)[] = []
    let isOver = false
    void over.then(() => {
      isOver = true
    })
    while (!isOver) {
      const answer = await pay(gateway, { text: 'keyed', key: 'acme', idempotencyKey: `k-${++keyed}` })
      statuses.push(answer?.status)
    }
    return statuses
  }
  const [steady, statuses] = await Promise.all([steadyLoad(gateway, { key: 'acme' }, over, 60), withKeys()])
  assert.deepEqual(steady.faults, {})
  assert.deepEqual([...new Set(statuses)], [200])
  gateway.kill('SIGTERM')
  const { stdout, stderr } = await gateway.exited
  assert.doesNotMatch(stdout + stderr, /is away/)
})
