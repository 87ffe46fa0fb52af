import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { exchange, gatewayFor } from '../../support/exchange.ts'
import { answerJson, chatAnswer, startUpstream } from '../../support/scripted-upstream.ts'

describe('a line that answered 429', () => {
  it('receives no calls for the wait that it requested, and is used again after that', async (t) => {
    const limited = await startUpstream((res) => answerJson(res, 429, {}, { 'retry-after-ms': '2000' }))
    const other = await startUpstream()
    t.after(() => Promise.all([limited.close(), other.close()]))
    const gateway = await gatewayFor(t, { lines: [limited, other].map(({ url }) => ({ url })) })
    const asked = performance.now()
    assert.equal((await exchange(gateway)).status, 200)
    const got = await exchange(gateway)
    assert.equal(got.status, 200)
    const { routing } = await gateway.entry(got.requestId)
    if (performance.now() - asked < 1900) {
      assert.equal(limited.requests.length, 1)
      assert.equal(routing?.eliminated[0]?.reason, 'resting')
      assert.deepEqual(
        routing?.attempts.map(({ line }) => line),
        ['line-1'],
      )
    }
    limited.script = (res) => chatAnswer(res)
    await sleep(2100)
    assert.equal((await exchange(gateway)).status, 200)
    assert.equal(limited.requests.length, 2)
  })

  it('rests for two seconds if it requested no wait', async (t) => {
    const limited = await startUpstream((res) => answerJson(res, 429, {}))
    t.after(() => limited.close())
    const gateway = await gatewayFor(t, { lines: [{ url: limited.url }] })
    for (let i = 0; i < 2; i++) {
      const got = await exchange(gateway)
      assert.equal(got.status, 429)
      assert.equal(got.headers.get('retry-after'), '2')
    }
    assert.equal(limited.requests.length, 1)
  })
})
