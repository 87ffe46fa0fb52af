import assert from 'node:assert/strict'
import { before, beforeEach, describe, it, type TestContext } from 'node:test'
import type { RouteOptions } from '../../../../lib/middleware/route/index.ts'
import { cleaningUp } from '../../../support/clean-up.ts'
import {
  ANTHROPIC_STREAM,
  bodyOf,
  eventsOf,
  gatewayFor,
  type Mode,
  modeName,
  OPENAI,
  OPENAI_STREAM,
  pathOf,
  STREAMS,
} from '../../../support/exchange.ts'
import type { TestGateway } from '../../../support/gateway.ts'
import {
  chatAnswer,
  type ScriptedUpstream,
  startUpstream,
  stream,
} from '../../../support/scripted-upstream.ts'
import { until } from '../../../support/until.ts'

describe('when the caller leaves', () => {
  let upstream: ScriptedUpstream
  let other: ScriptedUpstream
  const cleanUp = cleaningUp()
  before(async () => {
    upstream = await startUpstream()
    cleanUp.after(() => upstream.close())
    other = await startUpstream()
    cleanUp.after(() => other.close())
  })
  beforeEach(() => {
    upstream.requests.length = 0
  })

  const over = (t: TestContext, { protocol }: Mode, route: Partial<RouteOptions>) =>
    gatewayFor(t, { lines: [upstream, other].map(({ url }) => ({ url, protocol })), route })

  /** Leaves once the text has been seen, or, without one, once the upstream has the request. Answers the request id. */
  async function callAndLeave(gateway: TestGateway, mode: Mode, seen?: string): Promise<string> {
    const leaving = new AbortController()
    const { signal } = leaving
    const response = gateway.post(pathOf(mode), bodyOf(mode), { signal })
    response.catch(() => {})
    await until(() => upstream.requests.length === 1 && gateway.openCalls.size === 1)
    const [call] = gateway.openCalls
    assert.ok(call)
    if (seen !== undefined) {
      const reader = (await response).body?.getReader()
      let text = ''
      while (reader && !text.includes(seen)) text += Buffer.from((await reader.read()).value ?? []).toString()
    }
    leaving.abort()
    return call.id
  }
  async function ended(gateway: TestGateway, id: string) {
    await until(() => gateway.openCalls.size === 0, 'the end of the call', 5000)
    const entry = await gateway.entry(id)
    assert.deepEqual(
      [entry.status, entry.error_code, entry.outcome],
      [499, 'client_closed_request', 'interrupted'],
    )
    assert.equal(other.requests.length, 0, 'nobody else is asked for a caller who has gone')
    for (const line of gateway.config.catalog.lines) {
      assert.equal(gateway.lines.status(line).in_flight, 0)
      assert.equal(gateway.lines.status(line).circuit, 'closed')
    }
    return entry
  }
  const words = ['Once', ' upon', ' a', ' time']
  const beginning = (mode: Mode) => {
    const events = eventsOf(mode, words)
    return events.slice(0, events.findIndex((event) => event.includes(' upon')) + 1)
  }

  for (const mode of STREAMS) {
    it(`"abort" cuts the upstream at once and counts what was produced (${modeName(mode)})`, async (t) => {
      const gateway = await over(t, mode, { onDisconnect: 'abort' })
      upstream.script = (res) => stream(res, beginning(mode), { end: false })
      const id = await callAndLeave(gateway, mode, ' upon')
      const { usage, routing } = await ended(gateway, id)
      await until(() => upstream.requests[0]?.cut === true, 'the cut')
      assert.equal(usage?.source, 'estimated')
      assert.equal(usage?.output_tokens, 2)
      assert.ok(usage.input_tokens > 0)
      assert.deepEqual(routing?.disconnect, { policy: 'abort', ended: 'aborted' })
      assert.deepEqual(
        routing?.attempts.map(({ outcome }) => outcome),
        ['abandoned'],
      )
    })

    it(`"drain" reads on and knows the true usage (${modeName(mode)})`, async (t) => {
      const gateway = await over(t, mode, { onDisconnect: 'drain' })
      const goOn = Promise.withResolvers<void>()
      upstream.script = async (res) => {
        await stream(res, beginning(mode), { end: false })
        await goOn.promise
        for (const event of eventsOf(mode, words).slice(beginning(mode).length)) res.write(event)
        res.end()
      }
      const id = await callAndLeave(gateway, mode, ' upon')
      const [call] = gateway.openCalls
      await until(() => call?.left === true)
      assert.equal(gateway.openCalls.size, 1, 'the call is held while its upstream is drained')
      goOn.resolve()
      const { usage, routing } = await ended(gateway, id)
      assert.deepEqual([usage?.source, usage?.output_tokens], ['measured', 4])
      assert.deepEqual(routing?.disconnect, { policy: 'drain', ended: 'drained' })
      assert.equal(routing?.attempts[0]?.outcome, 'completed')
      assert.equal(upstream.requests[0]?.cut, false)
    })

    it(`"drain" gives up when its time is over (${modeName(mode)})`, async (t) => {
      const gateway = await over(t, mode, { onDisconnect: 'drain', drainMs: 500 })
      upstream.script = (res) => stream(res, beginning(mode), { end: false })
      const id = await callAndLeave(gateway, mode, ' upon')
      const { usage, routing } = await ended(gateway, id)
      assert.deepEqual([usage?.source, usage?.output_tokens], ['estimated', 2])
      assert.deepEqual(routing?.disconnect, { policy: 'drain', ended: 'drain_timeout' })
      await until(() => upstream.requests[0]?.cut === true, 'the cut')
    })
  }

  it('before any output, the input is counted', async (t) => {
    const gateway = await over(t, OPENAI_STREAM, {})
    upstream.script = (res) => stream(res, beginning(OPENAI_STREAM).slice(0, 1), { end: false })
    const { usage, routing } = await ended(gateway, await callAndLeave(gateway, OPENAI_STREAM))
    assert.deepEqual([usage?.output_tokens, usage?.source], [0, 'estimated'])
    assert.ok(usage && usage.input_tokens > 0)
    assert.equal(routing?.disconnect?.ended, 'aborted')
    await until(() => upstream.requests[0]?.cut === true, 'the cut')
  })

  it('"abort" cuts a whole answer too', async (t) => {
    const gateway = await over(t, OPENAI, {})
    upstream.script = () => {}
    const { usage } = await ended(gateway, await callAndLeave(gateway, OPENAI))
    assert.equal(usage?.source, 'estimated')
    await until(() => upstream.requests[0]?.cut === true, 'the cut')
  })

  it('"drain" waits for a whole answer and counts it', async (t) => {
    const gateway = await over(t, OPENAI, { onDisconnect: 'drain' })
    const goOn = Promise.withResolvers<void>()
    upstream.script = async (res) => {
      await goOn.promise
      chatAnswer(res)
    }
    const id = await callAndLeave(gateway, OPENAI)
    const [call] = gateway.openCalls
    await until(() => call?.left === true)
    goOn.resolve()
    const { usage, routing } = await ended(gateway, id)
    assert.deepEqual([usage?.source, usage?.output_tokens], ['measured', 3])
    assert.equal(routing?.disconnect?.ended, 'drained')
  })

  it('"drain" ends with the upstream when that fails, and no other line is tried', async (t) => {
    const gateway = await over(t, ANTHROPIC_STREAM, { onDisconnect: 'drain' })
    const goOn = Promise.withResolvers<void>()
    upstream.script = async (res) => {
      await goOn.promise
      res.socket?.resetAndDestroy()
    }
    const id = await callAndLeave(gateway, ANTHROPIC_STREAM)
    const [call] = gateway.openCalls
    await until(() => call?.left === true)
    goOn.resolve()
    const { usage, routing } = await ended(gateway, id)
    assert.equal(usage, null)
    assert.deepEqual(routing?.disconnect, { policy: 'drain', ended: 'upstream_failed' })
    assert.equal(routing?.attempts.length, 1)
  })
})
