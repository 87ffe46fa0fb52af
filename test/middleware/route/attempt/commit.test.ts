import assert from 'node:assert/strict'
import { describe, it, type TestContext } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { GatewayError } from '../../../../lib/core/errors/index.ts'
import { cleaningUp } from '../../../support/clean-up.ts'
import {
  ANTHROPIC_STREAM,
  answer,
  bodyOf,
  eventsOf,
  exchange,
  gatewayFor,
  type Mode,
  modeName,
  OPENAI_STREAM,
  pathOf,
  readExchange,
  STREAMS,
  saidTo,
} from '../../../support/exchange.ts'
import type { TestGateway } from '../../../support/gateway.ts'
import { SECRET } from '../../../support/outcome-row.ts'
import {
  chatChunk,
  messageEvent,
  messageEvents,
  startUpstream,
  stream,
} from '../../../support/scripted-upstream.ts'
import { until } from '../../../support/until.ts'

/** Events that come before the first real output. */
const PREAMBLES: { name: string; mode: Mode; events: string[] }[] = [
  { name: 'its head', mode: OPENAI_STREAM, events: [] },
  { name: 'comments', mode: OPENAI_STREAM, events: [`: ${SECRET}\n\n`, ': keep-alive\n\n'] },
  {
    name: 'the role, with and without empty text',
    mode: OPENAI_STREAM,
    events: [chatChunk({ role: 'assistant' }), chatChunk({ role: 'assistant', content: '', refusal: null })],
  },
  {
    name: 'an event without choices',
    mode: OPENAI_STREAM,
    events: [`data: ${JSON.stringify({ choices: [], prompt_filter_results: [{ id: SECRET }] })}\n\n`],
  },
  {
    name: 'the start of a message, of a block, and pings',
    mode: ANTHROPIC_STREAM,
    events: messageEvents([]).slice(0, 3),
  },
  {
    name: 'the start of a thinking block',
    mode: ANTHROPIC_STREAM,
    events: [
      messageEvent('content_block_start', { index: 0, content_block: { type: 'thinking', thinking: '' } }),
      messageEvent('ping'),
    ],
  },
]

describe('the first real output', async () => {
  const cleanUp = cleaningUp()
  const first = await startUpstream()
  cleanUp.after(() => first.close())
  const second = await startUpstream()
  cleanUp.after(() => second.close())

  const over = (t: TestContext, { protocol }: Mode): Promise<TestGateway> => {
    first.requests.length = 0
    second.requests.length = 0
    return gatewayFor(t, { lines: [first, second].map(({ url }) => ({ url, protocol })) })
  }

  for (const { name, mode, events } of PREAMBLES) {
    it(`is not ${name}: held back, and gone when the next line answers (${modeName(mode)})`, async (t) => {
      const gateway = await over(t, mode)
      const held = Promise.withResolvers<void>()
      first.script = async (res) => {
        await stream(res, events, { end: false })
        res.flushHeaders()
        await held.promise
        res.socket?.resetAndDestroy()
      }
      second.script = (res) => answer(res, mode, 'Bonjour')
      let answered = false
      const got = gateway.post(pathOf(mode), bodyOf(mode)).then((response) => {
        answered = true
        return readExchange(response)
      })
      await until(() => first.requests.length === 1)
      await sleep(40)
      assert.equal(answered, false, 'nothing has gone out, not even the head')
      held.resolve()
      const seen = await got
      assert.equal(seen.status, 200)
      assert.equal(seen.broken, false)
      const alone = eventsOf(mode, ['Bonjour']).join('')
      const usageChunk = /data: [^\n]*"choices":\[\],"usage"[^\n]*\n\n/
      assert.equal(seen.text, alone.replace(usageChunk, ''), 'the failover does not show')
    })
  }

  for (const mode of STREAMS) {
    it(`goes out at once, with all that was held back (${modeName(mode)})`, async (t) => {
      const gateway = await over(t, mode)
      const goOn = Promise.withResolvers<void>()
      const events = eventsOf(mode, ['Once', ' upon', ' a'])
      const commit = events.findIndex((event) => event.includes('Once')) + 1
      first.script = async (res) => {
        await stream(res, events.slice(0, commit), { end: false })
        await goOn.promise
        for (const event of events.slice(commit)) res.write(event)
        res.end()
      }
      const response = await gateway.post(pathOf(mode), bodyOf(mode))
      assert.equal(response.status, 200)
      assert.match(response.headers.get('content-type') ?? '', /^text\/event-stream/)
      const reader = response.body?.getReader()
      let text = ''
      while (reader && !text.includes('Once'))
        text += Buffer.from((await reader.read()).value ?? []).toString()
      assert.equal(text, events.slice(0, commit).join(''))
      goOn.resolve()
      for (let part = await reader?.read(); part && !part.done; part = await reader?.read())
        text += Buffer.from(part.value).toString()
      assert.match(text, / upon[\s\S]* a/)
      assert.equal(second.requests.length, 0)
    })
  }

  it('goes out before the error of a key that is over by then', async (t) => {
    const gateway = await gatewayFor(t, { lines: [{ url: first.url }] })
    first.script = (res) => {
      const [call] = gateway.openCalls
      assert.ok(call)
      call.keyWatch = { follow: (_, end) => end(new GatewayError('key_expired')) }
      return stream(res, eventsOf(OPENAI_STREAM, ['Once', ' upon']), { end: false, paceMs: 20 })
    }
    const got = await exchange(gateway, OPENAI_STREAM)
    assert.deepEqual([got.status, got.broken], [200, true])
    assert.match(got.text, /Once[\s\S]*key_expired/)
    const { outcome, error_code: code } = await gateway.entry(got.requestId)
    assert.deepEqual([outcome, code], ['interrupted', 'key_expired'])
  })

  it('comes from the third line when two fail in different ways', async (t) => {
    const third = await startUpstream((res) => answer(res, OPENAI_STREAM, 'Salut'))
    first.script = (res) => stream(res, [chatChunk({ role: 'assistant' })])
    second.script = (res) => void res.writeHead(500).end(SECRET)
    const gateway = await gatewayFor(t, { lines: [first, second, third].map(({ url }) => ({ url })) })
    const got = await exchange(gateway, OPENAI_STREAM)
    assert.equal(saidTo(OPENAI_STREAM, got), 'Salut')
    assert.doesNotMatch(got.text, new RegExp(SECRET))
    const { routing } = await gateway.entry(got.requestId)
    assert.deepEqual(
      routing?.attempts.map(({ line, outcome, upstream_status }) => [line, outcome, upstream_status]),
      [
        ['line-0', 'upstream_error', 200],
        ['line-1', 'upstream_error', 500],
        ['line-2', 'completed', 200],
      ],
    )
    await third.close()
  })
})
