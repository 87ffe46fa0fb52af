import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { exchange, gatewayFor, OPENAI } from '../../support/exchange.ts'
import { answerJson, startUpstream } from '../../support/scripted-upstream.ts'

describe('the attempts of a call', () => {
  it('share one deadline: the largest total clock of its lines', async (t) => {
    const silent = await startUpstream(() => {})
    t.after(() => silent.close())
    const timeouts = { firstByteMs: 1000, totalMs: 1500 }
    const gateway = await gatewayFor(t, {
      lines: [0, 1, 2].map(() => ({ url: silent.url, timeouts })),
    })
    const start = performance.now()
    const got = await exchange(gateway, OPENAI)
    const took = performance.now() - start
    assert.equal(got.status, 504)
    assert.equal(got.errorCode, 'upstream_timeout')
    assert.ok(took >= 1400, `${took} ms`)
    const { routing } = await gateway.entry(got.requestId)
    assert.deepEqual(
      routing?.attempts.map(({ outcome, timeout_phase }) => [outcome, timeout_phase]),
      [
        ['upstream_timeout', 'first_byte'],
        ['upstream_timeout', 'total'],
      ],
    )
    assert.equal(silent.requests.length, 2)
  })

  it('leave time for a line with a longer total clock', async (t) => {
    const silent = await startUpstream(() => {})
    const good = await startUpstream()
    t.after(() => Promise.all([silent.close(), good.close()]))
    const gateway = await gatewayFor(t, {
      lines: [
        { url: silent.url, timeouts: { totalMs: 500 } },
        { url: good.url, timeouts: { totalMs: 20_000 } },
      ],
    })
    assert.equal((await exchange(gateway)).status, 200)
  })

  it('are limited by maxAttempts', async (t) => {
    const failing = await startUpstream((res) => answerJson(res, 500, {}))
    t.after(() => failing.close())
    const lines = Array.from({ length: 6 }, () => ({ url: failing.url }))
    for (const maxAttempts of [1, 2, 5]) {
      failing.requests.length = 0
      const gateway = await gatewayFor(t, { lines, route: { maxAttempts } })
      await exchange(gateway)
      assert.equal(failing.requests.length, maxAttempts)
    }
  })

  it('are not multiplied by an outage: beyond ten a second, retries are at most a fifth of the calls', async (t) => {
    const failing = await startUpstream((res) => answerJson(res, 500, {}))
    t.after(() => failing.close())
    const circuit = { minimumCalls: 1_000_000 }
    const gateway = await gatewayFor(t, {
      lines: [0, 1, 2].map(() => ({ url: failing.url, circuit })),
    })
    const start = performance.now()
    const CALLS = 150
    const answers = []
    for (let i = 0; i < CALLS; i += 30)
      answers.push(...(await Promise.all(Array.from({ length: 30 }, () => exchange(gateway)))))
    const seconds = Math.ceil((performance.now() - start) / 1000) + 1
    const retries = failing.requests.length - CALLS
    assert.ok(retries >= 10, `${retries} retries: some are free`)
    assert.ok(retries <= CALLS * 0.2 + 10 * seconds, `${retries} retries in ${seconds} s`)
    for (const { status } of answers) assert.equal(status, 502)
    // One line tried: its own outcome, not all_candidates_failed.
    const withheld = answers.find(({ errorCode }) => errorCode === 'upstream_error')
    assert.ok(withheld)
    const { routing } = await gateway.entry(withheld.requestId)
    assert.equal(routing?.retry_budget_spent, true)
    assert.equal(routing?.attempts.length, 1)
  })

  it('of one model do not use up the retries of another', async (t) => {
    const failing = await startUpstream((res) => answerJson(res, 500, {}))
    t.after(() => failing.close())
    const models = { chat: 'a', other: 'b' }
    const gateway = await gatewayFor(t, {
      lines: [0, 1].map(() => ({ url: failing.url, models, circuit: { minimumCalls: 1_000_000 } })),
      config: { models: Object.keys(models).map((id) => ({ id, kind: 'chat' })) },
    })
    await Promise.all(Array.from({ length: 40 }, () => exchange(gateway)))
    const got = await exchange(gateway, OPENAI, { model: 'other' })
    const { routing } = await gateway.entry(got.requestId)
    assert.equal(routing?.attempts.length, 2)
  })
})
