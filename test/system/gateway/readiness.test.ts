import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { describe, it } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { ledgerServes, Readiness } from '../../../examples/gateway/serving/readiness.ts'
import { ledgerOf, units } from '../../ledger/support/faulty-ledger.ts'
import { PoolProcess, settle } from '../../ledger/support/pool-process.ts'
import { envelopeOf, jsonOf } from '../../support/answer-bodies.ts'
import { serveApp } from '../../support/app-server.ts'
import { chat, type GatewayProcess, post } from '../../support/gateway-process.ts'
import { startFileGateway } from './file-gateway.ts'

const limitFiles = ({ pid }: GatewayProcess, bytes: string) =>
  execFileSync('prlimit', ['--pid', `${pid}`, `--fsize=${bytes}:unlimited`])

async function readiness(url: string): Promise<{ status: number; body: unknown }> {
  const answer = await fetch(`${url}/readyz`)
  return { status: answer.status, body: await jsonOf(answer) }
}

const NOT_READY = { status: 503, body: { status: 'unavailable', reason: 'ledger' } }

describe('/readyz', () => {
  it('reports that charges cannot be written, for as long as that lasts, and recovers without a call', async (t) => {
    const { gateway } = await startFileGateway(t)
    assert.equal((await post(gateway.url, chat())).status, 200)
    assert.equal((await readiness(gateway.url)).status, 200)
    limitFiles(gateway, '0')
    const broken = await post(gateway.url, chat())
    assert.equal((await envelopeOf(broken)).error.code, 'billing_unavailable')
    // A lease that could not be enlarged, other than a charge, counts as an outage only when that goes on.
    const noticed = performance.now() + 10_000
    while ((await readiness(gateway.url)).status === 200) {
      assert.ok(performance.now() < noticed, 'no longer ready')
      await post(gateway.url, chat())
    }
    // Also when there is but one charge that waits, which might be at fault itself.
    for (let i = 0; i < 10; i++) {
      assert.deepEqual(await readiness(gateway.url), NOT_READY)
      await sleep(200)
    }
    assert.equal((await fetch(`${gateway.url}/healthz`)).status, 200)
    limitFiles(gateway, 'unlimited')
    const deadline = performance.now() + 10_000
    while ((await readiness(gateway.url)).status !== 200) {
      assert.ok(performance.now() < deadline, 'ready again')
      await sleep(50)
    }
    assert.equal((await post(gateway.url, chat())).status, 200)
  })

  it('does not keep calls away that would show that a charge alone is at fault', async (t) => {
    const process = new PoolProcess(ledgerOf('1000'))
    const { pool, ledger, clock } = process
    const held = await process.admitted(units(1))
    ledger.poison.add('bad')
    settle(held, 'bad', units(1))
    let writes = true
    const readiness = new Readiness(async () => {}, { freshMs: 0 })
    readiness.addCheck(
      'ledger',
      ledgerServes(pool, async () => {
        if (!writes) throw new Error('the disk is full')
      }),
    )
    const server = await serveApp((app) => void app.get('/readyz', readiness.handler()))
    t.after(() => server.close())
    const ask = async () => {
      // An answer may be a quarter of a second old.
      await sleep(300)
      return (await fetch(`${server.url}/readyz`)).status
    }
    await clock.advance(3000)
    assert.deepEqual([pool.away, pool.onTrial], [true, true])
    assert.equal(await ask(), 200)
    writes = false
    assert.equal(await ask(), 503)
    writes = true
    const trial = await process.admitted(units(1))
    settle(trial, 'trial', units(1))
    await clock.advance(1000)
    assert.deepEqual([pool.away, pool.onTrial, pool.stats.setAside], [false, false, 1])
    ledger.mend()
    await pool.close()
  })
})
