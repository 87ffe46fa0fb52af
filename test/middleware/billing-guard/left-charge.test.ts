import assert from 'node:assert/strict'
import { Readable } from 'node:stream'
import { finished } from 'node:stream/promises'
import { beforeEach, describe, it, type TestContext } from 'node:test'
import type { CallLogEntry } from '../../../lib/core/call/index.ts'
import { estimateTokens } from '../../../lib/core/operations/metering/token-estimate.ts'
import type { RouteOptions } from '../../../lib/middleware/route/index.ts'
import { LateLedger } from '../../ledger/support/late-ledger.ts'
import { twoWords, upTo, WORDS } from '../../ledger/support/two-words.ts'
import { cleaningUp } from '../../support/clean-up.ts'
import {
  bodyOf,
  eventsOf,
  type Mode,
  modeName,
  OPENAI,
  OPENAI_STREAM,
  pathOf,
  STREAMS,
} from '../../support/exchange.ts'
import {
  chatAnswer,
  chatAnswerOf,
  chatChunk,
  startUpstream,
  stream,
} from '../../support/scripted-upstream.ts'
import { until } from '../../support/until.ts'
import { ACCOUNTS, assertCharged, type BilledGateway, billedGateway, type Tokens } from './billed-gateway.ts'

describe('a call whose caller leaves', async () => {
  const cleanUp = cleaningUp()
  const upstream = await startUpstream()
  cleanUp.after(() => upstream.close())
  beforeEach(() => {
    upstream.requests.length = 0
  })
  const over = (t: TestContext, { protocol }: Mode, route: Partial<RouteOptions>, ledger?: LateLedger) =>
    billedGateway(t, { lines: [{ url: upstream.url, protocol }], route, ledger })

  /** Leaves once the text has been seen, or at once when the upstream has the request. */
  async function callAndLeave(
    gateway: BilledGateway,
    mode: Mode,
    seen?: string,
    heard?: Promise<void>,
  ): Promise<string> {
    const leaving = new AbortController()
    const response = gateway.post(pathOf(mode), bodyOf(mode), { signal: leaving.signal })
    response.catch(() => {})
    await until(() => upstream.requests.length === 1 && gateway.openCalls.size === 1)
    const [call] = gateway.openCalls
    assert.ok(call)
    if (seen !== undefined) {
      let text = ''
      const reader = (await response).body?.getReader()
      while (reader && !text.includes(seen)) text += Buffer.from((await reader.read()).value ?? []).toString()
    }
    await heard
    leaving.abort()
    await until(() => call.left)
    return call.id
  }
  async function ended(gateway: BilledGateway, id: string): Promise<CallLogEntry> {
    await until(() => gateway.openCalls.size === 0, 'the end of the call')
    const entry = await gateway.entry(id)
    assert.deepEqual([entry.status, entry.outcome], [499, 'interrupted'])
    return entry
  }

  for (const mode of STREAMS) {
    it(`is charged for what was said, where the policy is "abort" (${modeName(mode)})`, async (t) => {
      const gateway = await over(t, mode, { onDisconnect: 'abort' })
      upstream.script = (res) => stream(res, upTo(mode, ' upon'), { end: false })
      const entry = await ended(gateway, await callAndLeave(gateway, mode, ' upon'))
      await assertCharged(gateway, entry, twoWords(mode), 'estimated')
    })

    it(`is charged for all that was counted, where the policy is "drain" (${modeName(mode)})`, async (t) => {
      const gateway = await over(t, mode, { onDisconnect: 'drain' })
      const gone = Promise.withResolvers<void>()
      upstream.script = async (res) => {
        await stream(res, upTo(mode, 'Once'), { end: false })
        await gone.promise
        for (const event of eventsOf(mode, WORDS).slice(upTo(mode, 'Once').length)) res.write(event)
        res.end()
      }
      const id = await callAndLeave(gateway, mode, 'Once')
      gone.resolve()
      await assertCharged(gateway, await ended(gateway, id), [7, 0, 0, 2], 'measured')
    })

    it(`is charged for what was said until the drain's time was up (${modeName(mode)})`, async (t) => {
      const gateway = await over(t, mode, { onDisconnect: 'drain', drainMs: 500 })
      upstream.script = (res) => stream(res, upTo(mode, ' upon'), { end: false })
      const entry = await ended(gateway, await callAndLeave(gateway, mode, ' upon'))
      await assertCharged(gateway, entry, twoWords(mode), 'estimated')
    })

    it(`is charged once where its charge is being written (${modeName(mode)})`, async (t) => {
      const ledger = new LateLedger(ACCOUNTS)
      const gateway = await over(t, mode, {}, ledger)
      upstream.script = (res) => stream(res, eventsOf(mode, WORDS))
      const leaving = callAndLeave(gateway, mode, ' upon')
      await until(() => ledger.held === 1, 'the commit')
      const id = await leaving
      ledger.open()
      await assertCharged(gateway, await ended(gateway, id), [7, 0, 0, 2], 'measured')
    })
  }

  // In one write, so that a caller who has seen the text leaves when the gateway has read what follows.
  const AFTER_THE_FINISH: [when: string, events: number, tokens: Tokens, source: 'measured' | 'estimated'][] =
    [
      ['between finish reason and usage', 4, [null, 0, 0, 2], 'estimated'],
      ['between usage and the last event', 5, [7, 0, 0, 2], 'measured'],
    ]
  for (const [when, events, tokens, source] of AFTER_THE_FINISH) {
    it(`is charged for the whole answer, as far as it was counted: ${when}`, async (t) => {
      const gateway = await over(t, OPENAI_STREAM, { onDisconnect: 'abort' })
      upstream.script = (res) =>
        stream(res, [eventsOf(OPENAI_STREAM, WORDS).slice(0, events).join('')], { end: false })
      const entry = await ended(gateway, await callAndLeave(gateway, OPENAI_STREAM, ' upon'))
      await assertCharged(gateway, entry, tokens, source)
    })
  }

  it('is charged for its input before the first output, once the line has the request', async (t) => {
    const gateway = await over(t, OPENAI_STREAM, {})
    upstream.script = (res) => stream(res, upTo(OPENAI_STREAM, 'assistant'), { end: false })
    const entry = await ended(gateway, await callAndLeave(gateway, OPENAI_STREAM))
    await assertCharged(gateway, entry, [null, 0, 0, 0], 'estimated')
  })

  it('is charged for its input where a plain answer has not begun, and for the part that came', async (t) => {
    const begun = chatAnswerOf('word '.repeat(50)).slice(0, -40)
    for (const [part, output] of [
      ['', 0],
      [begun, estimateTokens(begun)],
    ] as const) {
      upstream.requests.length = 0
      const gateway = await over(t, OPENAI, {})
      const heard = Promise.withResolvers<void>()
      upstream.script = (res) => {
        if (part === '') return heard.resolve()
        res.writeHead(200, { 'content-type': 'application/json' })
        res.write(part, () => setTimeout(heard.resolve, 50))
      }
      const entry = await ended(gateway, await callAndLeave(gateway, OPENAI, undefined, heard.promise))
      await assertCharged(gateway, entry, [null, 0, 0, output], 'estimated')
    }
  })

  it('is charged for a whole answer that is read to its end without it', async (t) => {
    const gateway = await over(t, OPENAI, { onDisconnect: 'drain' })
    const gone = Promise.withResolvers<void>()
    upstream.script = async (res) => {
      await gone.promise
      chatAnswer(res)
    }
    const id = await callAndLeave(gateway, OPENAI)
    gone.resolve()
    await assertCharged(gateway, await ended(gateway, id), [7, 0, 0, 3], 'measured')
  })

  for (const policy of ['abort', 'drain'] as const) {
    it(`is charged for no more than was said where it had not read on ("${policy}")`, async (t) => {
      const gateway = await over(t, OPENAI_STREAM, { onDisconnect: policy })
      const text = ' word'.repeat(4000)
      let said = 0
      let left = false
      function* saying(): Generator<string> {
        while (!left) {
          said += estimateTokens(text)
          yield chatChunk({ content: text })
        }
        yield chatChunk({}, 'stop', { usage: { prompt_tokens: 100, completion_tokens: 123 } })
      }
      upstream.script = async (res) => {
        res.writeHead(200, { 'content-type': 'text/event-stream' })
        await finished(Readable.from(saying()).pipe(res)).catch(() => assert.equal(policy, 'abort'))
      }
      const id = await callAndLeave(gateway, OPENAI_STREAM, ' word')
      left = policy === 'drain'
      const { usage, billing } = await ended(gateway, id)
      const { spent, charges } = await gateway.books()
      assert.deepEqual([charges, spent], [1, billing?.charged])
      if (policy === 'drain') {
        assert.deepEqual([usage?.output_tokens, usage?.source], [123, 'measured'])
        return
      }
      assert.equal(usage?.source, 'estimated')
      assert.ok(usage.output_tokens > 0 && usage.output_tokens <= said, `${usage.output_tokens} of ${said}`)
    })
  }
})
