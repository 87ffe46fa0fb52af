import assert from 'node:assert/strict'
import { describe, it, type TestContext } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { GatewayError } from '../../../../lib/core/errors/index.ts'
import { cleaningUp } from '../../../support/clean-up.ts'
import {
  answer,
  bodyOf,
  dataOf,
  eventsOf,
  exchange,
  gatewayFor,
  MODES,
  type Mode,
  modeName,
  OPENAI_STREAM,
  pathOf,
  readExchange,
  STREAMS,
} from '../../../support/exchange.ts'
import { chatEvents, startUpstream, stream } from '../../../support/scripted-upstream.ts'
import { until } from '../../../support/until.ts'
import { assertEndWaits, ENDS, settleWith } from '../support/held-end.ts'

const over = (t: TestContext, url: string, { protocol }: Mode) =>
  gatewayFor(t, { lines: [{ url, protocol }] })

describe('the end of an answer', async () => {
  const cleanUp = cleaningUp()
  const upstream = await startUpstream()
  cleanUp.after(() => upstream.close())

  for (const mode of STREAMS) {
    it(`waits from the finish reason on until the call is settled (${modeName(mode)})`, async (t) => {
      const gateway = await over(t, upstream.url, mode)
      await assertEndWaits(gateway, upstream, mode)
    })
  }

  for (const mode of MODES) {
    it(`does not come when settling fails (${modeName(mode)})`, async (t) => {
      const gateway = await over(t, upstream.url, mode)
      upstream.script = (res) => {
        settleWith(gateway, () => Promise.reject(new GatewayError('billing_unavailable')))
        return answer(res, mode, 'Hello')
      }
      const got = await exchange(gateway, mode)
      assert.doesNotMatch(got.text, ENDS)
      if (mode.stream) {
        assert.equal(got.status, 200)
        assert.equal(got.broken, true)
        assert.equal(dataOf(got.text).at(-1)?.request_id, got.requestId)
      } else {
        assert.equal(got.status, 503)
        assert.doesNotMatch(got.text, /Hello/)
      }
      const entry = await gateway.entry(got.requestId)
      assert.equal(entry.error_code, 'billing_unavailable')
    })
  }

  it('waits with a whole answer, of which not even the head goes out', async (t) => {
    const mode = { protocol: 'openai', stream: false } as const
    const gateway = await over(t, upstream.url, mode)
    const settled = Promise.withResolvers<void>()
    let asked = false
    upstream.script = (res) => {
      settleWith(gateway, () => {
        asked = true
        return settled.promise
      })
      return answer(res, mode)
    }
    let answered = false
    const got = gateway.post(pathOf(mode), bodyOf(mode)).then((response) => {
      answered = true
      return readExchange(response)
    })
    await until(() => asked)
    await sleep(40)
    assert.equal(answered, false)
    settled.resolve()
    assert.equal((await got).status, 200)
  })

  it('is settled once all the same when the caller leaves while it waits', async (t) => {
    const gateway = await over(t, upstream.url, OPENAI_STREAM)
    const settled = Promise.withResolvers<void>()
    let asked = 0
    upstream.script = (res) => {
      settleWith(gateway, () => {
        asked++
        return settled.promise
      })
      return answer(res, OPENAI_STREAM)
    }
    const leaving = new AbortController()
    const response = await gateway.post(pathOf(OPENAI_STREAM), bodyOf(OPENAI_STREAM), {
      signal: leaving.signal,
    })
    await until(() => asked === 1)
    leaving.abort()
    await sleep(30)
    assert.equal(gateway.openCalls.size, 1, 'the call is open until its charge is written')
    settled.resolve()
    await until(() => gateway.openCalls.size === 0)
    assert.equal(asked, 1)
    const { usage } = await gateway.entry(response.headers.get('x-request-id'))
    assert.deepEqual([usage?.source, usage?.output_tokens], ['measured', 1])
  })

  it('is known by the last of several choices', async (t) => {
    const gateway = await over(t, upstream.url, OPENAI_STREAM)
    const settled = Promise.withResolvers<void>()
    let asked = false
    const choice = (index: number, delta: object, finish_reason: string | null = null) =>
      `data: ${JSON.stringify({ choices: [{ index, delta, finish_reason }] })}\n\n`
    upstream.script = (res) => {
      settleWith(gateway, () => {
        asked = true
        return settled.promise
      })
      return stream(res, [
        choice(0, { content: 'One' }),
        choice(0, {}, 'stop'),
        choice(1, { content: 'Two' }),
        choice(1, {}, 'length'),
        ...chatEvents([]).slice(-2),
      ])
    }
    const response = await gateway.post(pathOf(OPENAI_STREAM), { ...bodyOf(OPENAI_STREAM), n: 2 })
    let text = ''
    const reading = (async () => {
      for await (const chunk of response.body ?? []) text += Buffer.from(chunk as Uint8Array).toString()
    })()
    await until(() => asked && text.includes('Two'))
    await sleep(30)
    assert.match(text, /"stop"/)
    assert.doesNotMatch(text, /"length"|\[DONE\]/)
    settled.resolve()
    await reading
    assert.match(text, /"length"[\s\S]*\[DONE\]\n\n$/)
  })

  for (const mode of STREAMS) {
    it(`is added once where the upstream forgets it (${modeName(mode)})`, async (t) => {
      const gateway = await over(t, upstream.url, mode)
      const events = eventsOf(mode, ['Hello'])
      upstream.script = (res) => stream(res, events.slice(0, -1))
      const got = await exchange(gateway, mode)
      assert.equal(got.broken, false)
      assert.ok(got.text.endsWith(events.at(-1) ?? ''))
      assert.equal(got.text.split(events.at(-1) ?? '').length, 2)
    })

    it(`stands when the upstream breaks off behind its finish reason (${modeName(mode)})`, async (t) => {
      const gateway = await over(t, upstream.url, mode)
      const events = eventsOf(mode, ['Hello'])
      upstream.script = async (res) => {
        // The usage of the openai stream comes behind the finish reason; it gets lost here.
        await stream(res, events.slice(0, mode.protocol === 'openai' ? 3 : -1), { paceMs: 5, end: false })
        res.socket?.resetAndDestroy()
      }
      const got = await exchange(gateway, mode)
      assert.equal(got.broken, false)
      assert.ok(got.text.endsWith(events.at(-1) ?? ''))
      const entry = await gateway.entry(got.requestId)
      assert.equal(entry.outcome, 'completed')
      assert.equal(entry.usage?.source, mode.protocol === 'openai' ? 'estimated' : 'measured')
    })

    it(`is the last that the caller gets, whatever the upstream sends behind it (${modeName(mode)})`, async (t) => {
      const gateway = await over(t, upstream.url, mode)
      const events = eventsOf(mode, ['Hello'])
      upstream.script = (res) => stream(res, [...events, ...events])
      const got = await exchange(gateway, mode)
      assert.equal(got.broken, false)
      assert.ok(got.text.endsWith(events.at(-1) ?? ''))
      assert.equal(got.text.split(events.at(-1) ?? '').length, 2)
    })
  }
})
