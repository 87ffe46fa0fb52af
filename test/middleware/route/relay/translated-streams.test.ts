import assert from 'node:assert/strict'
import { describe, it, type TestContext } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { GatewayError } from '../../../../lib/core/errors/index.ts'
import { cleaningUp } from '../../../support/clean-up.ts'
import {
  ANTHROPIC_STREAM,
  answer,
  bodyOf,
  dataOf,
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
import { assertEndWaits, ENDS, settleWith } from '../support/held-end.ts'

/** The protocol of the line whose stream a caller gets translated. */
const lineOf = ({ protocol }: Mode): Mode => (protocol === 'openai' ? ANTHROPIC_STREAM : OPENAI_STREAM)

/** The events before the first output, by the protocol of the line. */
const PREAMBLE = {
  openai: [`: ${SECRET}\n\n`, chatChunk({ role: 'assistant', content: '' }, null, { id: SECRET })],
  anthropic: [
    ...messageEvents([]).slice(0, 3),
    messageEvent('content_block_start', { index: 1, content_block: { type: 'thinking', thinking: '' } }),
  ],
}

for (const mode of STREAMS) {
  const across = lineOf(mode)

  describe(`a translated stream (caller: ${modeName(mode)})`, async () => {
    const cleanUp = cleaningUp()
    const first = await startUpstream()
    cleanUp.after(() => first.close())
    const second = await startUpstream()
    cleanUp.after(() => second.close())

    const over = (t: TestContext): Promise<TestGateway> => {
      first.requests.length = 0
      second.requests.length = 0
      return gatewayFor(t, {
        lines: [
          { url: first.url, protocol: across.protocol },
          { url: second.url, protocol: mode.protocol },
        ],
      })
    }

    it('is held back before its first output, and gone when the next line answers', async (t) => {
      const gateway = await over(t)
      const held = Promise.withResolvers<void>()
      first.script = async (res) => {
        await stream(res, PREAMBLE[across.protocol], { end: false })
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
      assert.equal(saidTo(mode, seen), 'Bonjour')
      assert.doesNotMatch(seen.text, new RegExp(SECRET))
      assert.equal(
        seen.text.split(/message_start|"role":"assistant"/).length - 1,
        mode.protocol === 'openai' ? 1 : 3,
      )
    })

    it('flows from its first output on', async (t) => {
      const gateway = await over(t)
      const goOn = Promise.withResolvers<void>()
      first.script = async (res) => {
        const events = eventsOf(across, ['one ', 'two'])
        const cut = events.findIndex((event) => event.includes('two'))
        await stream(res, events.slice(0, cut), { end: false })
        await goOn.promise
        for (const event of events.slice(cut)) res.write(event)
        res.end()
      }
      const response = await gateway.post(pathOf(mode), bodyOf(mode))
      const reader = response.body?.getReader()
      const { value } = (await reader?.read()) ?? {}
      assert.match(Buffer.from(value ?? '').toString(), /one /)
      goOn.resolve()
      while (!(await reader?.read())?.done);
      assert.equal(second.requests.length, 0)
    })

    it('waits from the finish reason on until the call is settled', async (t) => {
      const gateway = await over(t)
      await assertEndWaits(gateway, first, mode, across)
    })

    it('ends in an error of the caller’s protocol when settling fails', async (t) => {
      const gateway = await over(t)
      first.script = (res) => {
        settleWith(gateway, () => Promise.reject(new GatewayError('billing_unavailable')))
        return answer(res, across, 'Hello')
      }
      const got = await exchange(gateway, mode)
      assert.doesNotMatch(got.text, ENDS)
      assert.equal(got.broken, true)
      const last = dataOf(got.text).at(-1)
      assert.equal(last?.request_id, got.requestId)
      assert.equal((await gateway.entry(got.requestId)).error_code, 'billing_unavailable')
    })

    it('stands when the line breaks off behind its finish reason', async (t) => {
      const gateway = await over(t)
      first.script = async (res) => {
        const events = eventsOf(across, ['Hello'])
        const finish = events.findIndex((event) =>
          /"finish_reason":"stop"|"stop_reason":"end_turn"/.test(event),
        )
        await stream(res, events.slice(0, finish + 1), { end: false })
        await sleep(30)
        res.socket?.resetAndDestroy()
      }
      const got = await exchange(gateway, mode)
      assert.equal(got.broken, false)
      assert.equal(saidTo(mode, got), 'Hello')
      assert.match(got.text, /(\[DONE\]|message_stop"\})\n\n$/)
      const entry = await gateway.entry(got.requestId)
      assert.equal(entry.outcome, 'completed')
      assert.equal(second.requests.length, 0)
    })

    it('without output is passed over', async (t) => {
      const gateway = await over(t)
      first.script = (res) => stream(res, eventsOf(across, []))
      second.script = (res) => answer(res, mode, 'Bonjour')
      const got = await exchange(gateway, mode)
      assert.equal(saidTo(mode, got), 'Bonjour')
      const { routing } = await gateway.entry(got.requestId)
      assert.equal(routing?.attempts[0]?.outcome, 'empty_completion')
    })

    it('leaves out what it does not know, and the trace counts it', async (t) => {
      const gateway = await over(t)
      const unknown =
        across.protocol === 'anthropic'
          ? [messageEvent('weather_report', { sun: true })]
          : [chatChunk({ audio: { id: 'a', data: 'AAAA' } })]
      first.script = (res) =>
        stream(
          res,
          eventsOf(across, ['Hel', 'lo']).flatMap((event) =>
            event.includes('"lo"') ? [...unknown, event] : [event],
          ),
        )
      const got = await exchange(gateway, mode)
      assert.equal(saidTo(mode, got), 'Hello')
      const { routing } = await gateway.entry(got.requestId)
      assert.equal(routing?.attempts[0]?.skipped, 1)
    })
  })
}
