import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { openRedisLimits } from '../../../examples/gateway/redis-limits.ts'
import { startRedis, WITHOUT_REDIS } from '../../support/redis-server.ts'
import { untilAsync } from '../../support/until.ts'

const SILENT = { info() {}, warn() {}, error() {} }

describe('limits in a Redis that was away', { skip: WITHOUT_REDIS, timeout: 120_000 }, () => {
  it('go on behind the promoted replica while the old master hangs with its connections', async (t) => {
    const master = await startRedis()
    t.after(() => master.close())
    const replica = await startRedis({ settings: ['--replicaof', `127.0.0.1 ${master.port}`] })
    t.after(() => replica.close())
    const sentinel = await startRedis({ sentinelOf: { name: 'limits', port: master.port } })
    t.after(() => sentinel.close())
    const watch = sentinel.client()
    await untilAsync(async () =>
      `${await watch.call('SENTINEL', 'REPLICAS', 'limits')}`.includes(`${replica.port}`),
    )
    const limits = openRedisLimits(`redis+sentinel://127.0.0.1:${sentinel.port}/limits`, SILENT)
    t.after(() => limits.close())
    await limits.ping()

    master.pause()
    const promoted = async () => `${await replica.client().call('ROLE')}`.startsWith('master')
    await untilAsync(promoted, 'the promotion')
    const answers = () =>
      limits.ping().then(
        () => true,
        () => false,
      )
    await untilAsync(answers, 'the recovery', 5000)
    assert.equal(limits.state.away, false)
  })
})
