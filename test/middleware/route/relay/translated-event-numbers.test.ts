import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { GatewayError } from '../../../../lib/core/errors/index.ts'
import {
  ANTHROPIC_STREAM,
  dataOf,
  type Exchange,
  eventsOf,
  gatewayFor,
  type Mode,
  OPENAI_STREAM,
  readExchange,
} from '../../../support/exchange.ts'
import { chatChunk, startUpstream, stream, type UpstreamScript } from '../../../support/scripted-upstream.ts'
import { settleWith } from '../support/held-end.ts'

const LINES: readonly { readonly mode: Mode; readonly extra: object }[] = [
  { mode: OPENAI_STREAM, extra: { endpoints: ['chat/completions'] } },
  { mode: ANTHROPIC_STREAM, extra: {} },
]

const eventsTo = (mode: Mode, word: string): string[] => {
  const events = eventsOf(mode, ['one ', 'two', 'three'])
  return events.slice(0, events.findIndex((event) => event.includes(word)) + 1)
}

/** The error of a stream is numbered as the next event behind those that came. */
function assertNumbered({ text, broken }: Exchange, code: string): void {
  assert.equal(broken, true)
  const events: readonly { sequence_number?: number; type?: string; code?: string }[] = dataOf(text)
  assert.ok(events.length > 4, text)
  assert.deepEqual(
    events.map(({ sequence_number }) => sequence_number),
    events.map((_event, at) => at),
  )
  const last = events.at(-1)
  assert.equal(last?.type, 'error')
  assert.equal(last?.code, code)
}

for (const { mode, extra } of LINES) {
  describe(`a response translated from a stream of the ${mode.protocol} protocol that ends in an error`, () => {
    const ask = async (t: Parameters<typeof gatewayFor>[0], script: UpstreamScript, failing = false) => {
      const upstream = await startUpstream((...request) => {
        if (failing) settleWith(gateway, () => Promise.reject(new GatewayError('billing_unavailable')))
        return script(...request)
      })
      t.after(() => upstream.close())
      const line = { url: upstream.url, protocol: mode.protocol, ...extra }
      const gateway = await gatewayFor(t, { lines: [line] })
      return readExchange(
        await gateway.post('/v1/responses', { model: 'chat', input: 'hi', stream: true, store: false }),
      )
    }

    for (const word of ['one ', 'three'])
      it(`numbers the error behind the events that came up to "${word}"`, async (t) => {
        assertNumbered(await ask(t, (res) => stream(res, eventsTo(mode, word))), 'upstream_error')
      })

    it('does not count the events of the end, which were held back', async (t) => {
      assertNumbered(
        await ask(t, (res) => stream(res, eventsOf(mode, ['one ', 'two'])), true),
        'billing_unavailable',
      )
    })

    if (mode === OPENAI_STREAM)
      it('does not count text that came with the finish reason', async (t) => {
        const events = [chatChunk({ role: 'assistant', content: 'one' }), chatChunk({ content: '!' }, 'stop')]
        assertNumbered(await ask(t, (res) => stream(res, events), true), 'billing_unavailable')
      })
  })
}
