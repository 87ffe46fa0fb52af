import assert from 'node:assert/strict'
import { describe, it, type TestContext } from 'node:test'
import { clockOf } from '../../support/clock.ts'
import { exchange, gatewayFor } from '../../support/exchange.ts'
import { answerJson, chatAnswer, startUpstream } from '../../support/scripted-upstream.ts'

const SECOND = 1000

/** A line that answers 429 until a test changes its script, and its callers on a clock of the test. */
async function limitedLine(t: TestContext, headers: Record<string, string> = {}) {
  const clock = clockOf(t)
  clock.stop()
  const upstream = await startUpstream((res) => answerJson(res, 429, {}, headers))
  t.after(() => upstream.close())
  const gateway = await gatewayFor(t, { lines: [{ url: upstream.url }] })
  const asked = () => upstream.requests.length
  return {
    clock,
    upstream,
    gateway,
    /** Makes a call that reaches the line, and returns the seconds that its caller has to wait. */
    async limited(): Promise<number> {
      const before = asked()
      const got = await exchange(gateway)
      assert.deepEqual([got.status, got.errorCode, asked()], [429, 'upstream_rate_limited', before + 1])
      return Number(got.headers.get('retry-after'))
    },
    /** Makes a call that the line is not asked for. */
    async kept(): Promise<void> {
      const before = asked()
      assert.deepEqual([(await exchange(gateway)).status, asked()], [429, before])
    },
  }
}

describe('a line that answers 429 without a wait', () => {
  it('rests for 2 s, then twice as long each time, up to 30 s, and is asked once after each rest', async (t) => {
    const { clock, limited, kept } = await limitedLine(t)
    for (const seconds of [2, 4, 8, 16, 30, 30, 30]) {
      assert.equal(await limited(), seconds)
      clock.pass(seconds * SECOND - 1)
      await kept()
      clock.pass(1)
    }
  })

  it('starts again with 2 s after an answer', async (t) => {
    const { clock, upstream, gateway, limited } = await limitedLine(t)
    for (const seconds of [2, 4, 8]) {
      assert.equal(await limited(), seconds)
      clock.pass(seconds * SECOND)
    }
    const { script } = upstream
    upstream.script = (res) => chatAnswer(res)
    assert.equal((await exchange(gateway)).status, 200)
    upstream.script = script
    assert.equal(await limited(), 2)
  })

  it('starts again with 2 s if it received no call for a while', async (t) => {
    const { clock, limited } = await limitedLine(t)
    assert.equal(await limited(), 2)
    clock.pass((2 + 29) * SECOND)
    assert.equal(await limited(), 4, 'it goes on')
    clock.pass((4 + 30) * SECOND)
    assert.equal(await limited(), 2)
  })

  it('starts again with 2 s after its rest is lifted', async (t) => {
    const { clock, gateway, limited } = await limitedLine(t)
    assert.equal(await limited(), 2)
    clock.pass(2 * SECOND)
    assert.equal(await limited(), 4)
    gateway.lines.liftRests('line-0')
    assert.equal(await limited(), 2)
  })

  it('rests once for calls that it refused together', async (t) => {
    const { clock, upstream, gateway, limited } = await limitedLine(t)
    const all = Promise.withResolvers<void>()
    upstream.script = async (res, _request, index) => {
      if (index === 9) all.resolve()
      await all.promise
      answerJson(res, 429, {})
    }
    const together = await Promise.all(Array.from({ length: 10 }, () => exchange(gateway)))
    assert.deepEqual(
      together.map(({ headers }) => headers.get('retry-after')),
      Array(10).fill('2'),
    )
    clock.pass(2 * SECOND)
    upstream.script = (res) => answerJson(res, 429, {})
    assert.equal(await limited(), 4)
  })
})

describe('a line that answers 429 with a wait', () => {
  for (const [said, seconds] of [
    ['7', 7],
    ['60', 60],
    ['61', 60],
    ['86400', 60],
  ] as const) {
    it(`rests ${seconds} s for ${said}, any number of times`, async (t) => {
      const { clock, limited, kept } = await limitedLine(t, { 'retry-after': said })
      for (let i = 0; i < 3; i++) {
        assert.equal(await limited(), seconds)
        clock.pass(seconds * SECOND - 1)
        await kept()
        clock.pass(1)
      }
    })
  }
})
