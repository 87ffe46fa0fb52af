import assert from 'node:assert/strict'
import { beforeEach, describe, it } from 'node:test'
import { cleaningUp } from '../../../support/clean-up.ts'
import { answer, exchange, gatewayFor, MODES, type Mode, saidTo } from '../../../support/exchange.ts'
import { answerJson, messageEvent, stream } from '../../../support/scripted-upstream.ts'
import { refuse, startTwoProtocols } from '../../../support/two-protocols.ts'

describe('requests that a line of another protocol has no word for', async () => {
  const { own, foreign, linesFor, clear, close } = await startTwoProtocols()
  beforeEach(clear)
  cleaningUp().after(close)

  describe('a request that another protocol has no word for', () => {
    const CASES = [
      { mode: MODES[0] as Mode, extra: { n: 2 }, param: 'n' },
      { mode: MODES[2] as Mode, extra: { top_k: 5 }, param: 'top_k' },
    ]
    for (const { mode, extra, param } of CASES) {
      it(`is refused, naming it, where no other line is left (${param})`, async (t) => {
        const gateway = await gatewayFor(t, { lines: linesFor(mode).slice(1) })
        const got = await exchange(gateway, mode, extra)
        assert.equal(got.status, 400)
        const { error } = got.envelope()
        assert.match(error.message, new RegExp(`\\b${param}\\b`))
        if (mode.protocol === 'openai')
          assert.deepEqual([error.code, error.param], ['unsupported_feature', param])
        assert.equal(foreign.requests.length, 0)
        const { routing, error_code } = await gateway.entry(got.requestId)
        assert.equal(error_code, 'unsupported_feature')
        assert.deepEqual(routing?.eliminated, [
          { line: 'foreign', reason: 'protocol', detail: `${param} has no counterpart` },
        ])
        assert.deepEqual(routing?.attempts, [])
      })

      it(`goes to the lines that have (${param})`, async (t) => {
        own.script = (res) => answer(res, mode, 'Hello')
        const gateway = await gatewayFor(t, { lines: linesFor(mode).toReversed() })
        const got = await exchange(gateway, mode, extra)
        assert.equal(saidTo(mode, got), 'Hello')
        assert.equal(foreign.requests.length, 0)
      })

      it(`waits for the lines that have, where their circuit is open (${param})`, async (t) => {
        own.script = refuse(500)
        const circuit = { errorPercent: 1, minimumCalls: 1, resetMs: 60_000 }
        const gateway = await gatewayFor(t, { lines: linesFor(mode, { circuit }).toReversed() })
        assert.equal((await exchange(gateway, mode, extra)).status, 502)
        const got = await exchange(gateway, mode, extra)
        assert.equal(got.status, 503)
        const { error_code } = await gateway.entry(got.requestId)
        assert.equal(error_code, 'circuit_open')
        assert.ok(Number(got.headers.get('retry-after')) > 1)
      })
    }
  })

  describe('the web search of Claude Code on a model that cannot search', () => {
    for (const mode of MODES.filter(({ protocol }) => protocol === 'anthropic'))
      it(`is refused, naming the tool (${mode.stream ? 'streamed' : 'plain'})`, async (t) => {
        const gateway = await gatewayFor(t, { lines: linesFor(mode).slice(1) })
        const search = { type: 'web_search_20250305', name: 'web_search', max_uses: 8 }
        const got = await exchange(gateway, mode, { tools: [search] })
        assert.equal(got.status, 400)
        assert.match(got.envelope().error.message, /no counterpart for the tool "web_search_20250305"/)
        assert.equal(foreign.requests.length, 0)
      })
  })

  describe('a translated answer', () => {
    it('leaves out what has no counterpart and counts it in the trace', async (t) => {
      const server = { type: 'server_tool_use', id: 'srvtoolu_1', name: 'web_search', input: {} }
      foreign.script = (res, { json }) =>
        json.stream
          ? stream(res, [
              messageEvent('message_start', {
                message: { id: 'msg_1', usage: { input_tokens: 7, output_tokens: 1 } },
              }),
              messageEvent('content_block_start', { index: 0, content_block: server }),
              messageEvent('content_block_stop', { index: 0 }),
              messageEvent('content_block_start', { index: 1, content_block: { type: 'text', text: '' } }),
              messageEvent('content_block_delta', { index: 1, delta: { type: 'text_delta', text: 'Hi' } }),
              messageEvent('content_block_stop', { index: 1 }),
              messageEvent('weather_report'),
              messageEvent('message_delta', {
                delta: { stop_reason: 'end_turn' },
                usage: { output_tokens: 3 },
              }),
              messageEvent('message_stop'),
            ])
          : answerJson(res, 200, {
              id: 'msg_1',
              content: [server, { type: 'weather' }, { type: 'text', text: 'Hi' }],
              stop_reason: 'end_turn',
            })
      for (const mode of MODES.slice(0, 2)) {
        const gateway = await gatewayFor(t, { lines: linesFor(mode).slice(1) })
        const got = await exchange(gateway, mode)
        assert.equal(saidTo(mode, got), 'Hi')
        const { routing } = await gateway.entry(got.requestId)
        assert.equal(routing?.attempts[0]?.skipped, 2)
      }
    })

    it('that is not what the line’s protocol sends is tried on another line', async (t) => {
      const mode = MODES[2] as Mode
      own.script = (res) => answer(res, mode, 'Hello')
      foreign.script = (res) =>
        answerJson(res, 200, {
          choices: [
            {
              message: {
                tool_calls: [{ id: 'call_1', type: 'function', function: { name: 'f', arguments: '{"a":' } }],
              },
              finish_reason: 'tool_calls',
            },
          ],
        })
      const gateway = await gatewayFor(t, { lines: linesFor(mode).toReversed() })
      const got = await exchange(gateway, mode)
      assert.equal(saidTo(mode, got), 'Hello')
      const { routing } = await gateway.entry(got.requestId)
      assert.equal(routing?.attempts[0]?.outcome, 'upstream_error')
    })

    it('that is nested too deep to be written again is tried on another line', async (t) => {
      const mode = MODES[2] as Mode
      own.script = (res) => answer(res, mode, 'Hello')
      const deep = `{"a":${'['.repeat(20_000)}${']'.repeat(20_000)}}`
      const call = { id: 'call_1', type: 'function', function: { name: 'f', arguments: deep } }
      foreign.script = (res) => answerJson(res, 200, { choices: [{ message: { tool_calls: [call] } }] })
      const gateway = await gatewayFor(t, { lines: linesFor(mode).toReversed() })
      assert.equal(saidTo(mode, await exchange(gateway, mode)), 'Hello')
    })
  })
})
