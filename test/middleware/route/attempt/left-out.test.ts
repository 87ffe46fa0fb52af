import assert from 'node:assert/strict'
import { beforeEach, describe, it } from 'node:test'
import { cleaningUp } from '../../../support/clean-up.ts'
import {
  ANTHROPIC,
  answer,
  exchange,
  gatewayFor,
  MODES,
  type Mode,
  modeName,
  OPENAI,
  saidTo,
} from '../../../support/exchange.ts'
import { acrossFrom, refuse, startTwoProtocols } from '../../../support/two-protocols.ts'

describe('members that a line of another protocol has no word for', async () => {
  const { own, foreign, linesFor, clear, close } = await startTwoProtocols()
  beforeEach(clear)
  cleaningUp().after(close)

  const DROP = { headers: { 'x-gateway-unsupported': 'drop' } }
  const REFUSE = { headers: { 'x-gateway-unsupported': 'refuse' } }
  const HOSTED = { type: 'file_search' }
  const TEXT = { type: 'text', text: 'hi' }
  const said = (...content: unknown[]) => ({ messages: [{ role: 'user', content }] })

  /** The line of the other protocol only. */
  const foreignLine = (mode: Mode, members: object = {}) => linesFor(mode, {}, members).slice(1)

  describe('a member without a counterpart', () => {
    const ROWS: { mode: Mode; extra: Record<string, unknown>; told: string }[] = [
      { mode: OPENAI, extra: { n: 2, logprobs: true }, told: 'n, logprobs' },
      { mode: OPENAI, extra: { guided_regex: 'a+' }, told: 'guided_regex' },
      { mode: OPENAI, extra: { 'a\u00e9, b\r\nx': 1 }, told: 'a???b??x' },
      { mode: OPENAI, extra: { stop: ['\n', 'END'] }, told: 'stop' },
      { mode: OPENAI, extra: { tools: [HOSTED], tool_choice: 'auto' }, told: 'tools[0]' },
      {
        mode: OPENAI,
        extra: said(TEXT, { type: 'input_audio', input_audio: { data: 'aGk=', format: 'wav' } }),
        told: 'messages[0].content[1]',
      },
      {
        mode: OPENAI,
        extra: said(TEXT, { type: 'image_url', image_url: { url: 'data:image/bmp;base64,aGk=' } }),
        told: 'messages[0].content[1].image_url.url',
      },
      { mode: ANTHROPIC, extra: { top_k: 5 }, told: 'top_k' },
      { mode: ANTHROPIC, extra: { stop_sequences: ['a', 'b', 'c', 'd', 'e'] }, told: 'stop_sequences' },
      {
        mode: ANTHROPIC,
        extra: { tools: [{ type: 'code_execution_20250825', name: 'code_execution' }] },
        told: 'tools[0]',
      },
      {
        mode: ANTHROPIC,
        extra: said(TEXT, {
          type: 'document',
          source: { type: 'text', media_type: 'text/plain', data: 'x' },
          citations: { enabled: true },
        }),
        told: 'messages[0].content[1].citations',
      },
      {
        mode: ANTHROPIC,
        extra: said(TEXT, { type: 'document', source: { type: 'url', url: 'https://a.example/x.pdf' } }),
        told: 'messages[0].content[1].source',
      },
    ]
    for (const { mode, extra, told } of ROWS) {
      it(`is left out where the caller asks for that, and named: ${told}`, async (t) => {
        foreign.script = (res) => answer(res, acrossFrom(mode))
        const gateway = await gatewayFor(t, { lines: foreignLine(mode) })
        assert.equal((await exchange(gateway, mode, extra)).status, 400)
        const got = await exchange(gateway, mode, extra, DROP)
        assert.equal(saidTo(mode, got), 'Hello')
        assert.equal(got.headers.get('x-gateway-dropped'), told)
        const { routing } = await gateway.entry(got.requestId)
        assert.deepEqual(routing?.attempts[0]?.dropped, told.split(', '))
        assert.equal(foreign.requests.length, 1)
      })
    }

    for (const mode of MODES) {
      it(`is left out where the line's config says so (${modeName(mode)})`, async (t) => {
        foreign.script = (res) => answer(res, acrossFrom(mode))
        const gateway = await gatewayFor(t, { lines: foreignLine(mode, { unsupported: 'drop' }) })
        const got = await exchange(gateway, mode, { some_member: 1 })
        assert.equal(saidTo(mode, got), 'Hello')
        assert.equal(got.headers.get('x-gateway-dropped'), 'some_member')
        assert.equal((await exchange(gateway, mode, { some_member: 1 }, REFUSE)).status, 400)
        assert.equal((await exchange(gateway, mode)).headers.get('x-gateway-dropped'), null)
      })
    }

    it('is named for the line that answers only', async (t) => {
      foreign.script = refuse(500)
      own.script = (res) => answer(res, OPENAI)
      const gateway = await gatewayFor(t, { lines: linesFor(OPENAI).toReversed() })
      const got = await exchange(gateway, OPENAI, { n: 2 }, DROP)
      assert.equal(saidTo(OPENAI, got), 'Hello')
      assert.equal(got.headers.get('x-gateway-dropped'), null)
      const { routing } = await gateway.entry(got.requestId)
      assert.deepEqual(
        routing?.attempts.map(({ dropped }) => dropped),
        [['n'], undefined],
      )
    })

    it('is named in a bounded header', async (t) => {
      foreign.script = (res) => answer(res, ANTHROPIC)
      const gateway = await gatewayFor(t, { lines: foreignLine(OPENAI) })
      const many = Object.fromEntries(Array.from({ length: 500 }, (_, i) => [`${i}`.padStart(300, 'm'), i]))
      const got = await exchange(gateway, OPENAI, many, DROP)
      assert.equal(saidTo(OPENAI, got), 'Hello')
      const told = got.headers.get('x-gateway-dropped') ?? ''
      assert.match(told, /, \+480$/)
      assert.ok(told.length < 1500)
    })

    const NEEDED: { mode: Mode; extra: Record<string, unknown>; param: string }[] = [
      { mode: OPENAI, extra: said({ type: 'input_audio', input_audio: {} }), param: 'messages[0].content' },
      { mode: OPENAI, extra: { tools: [{ type: 'local_shell' }] }, param: 'tools[0]' },
      { mode: ANTHROPIC, extra: { tools: [{ type: 'bash_20250124', name: 'bash' }] }, param: 'tools[0]' },
      { mode: ANTHROPIC, extra: said({ type: 'new_block' }), param: 'messages[0].content' },
      { mode: ANTHROPIC, extra: { inference_geo: 'us' }, param: 'inference_geo' },
      { mode: ANTHROPIC, extra: { max_tokens: 0 }, param: 'max_tokens' },
    ]
    for (const { mode, extra, param } of NEEDED) {
      it(`is refused all the same if the request would be another one: ${JSON.stringify(extra)}`, async (t) => {
        const gateway = await gatewayFor(t, { lines: foreignLine(mode) })
        const got = await exchange(gateway, mode, extra, DROP)
        assert.equal(got.status, 400)
        assert.ok(got.envelope().error.message.includes(param))
        assert.equal(foreign.requests.length, 0)
      })
    }

    it('names the tool, and how to do without it', async (t) => {
      const gateway = await gatewayFor(t, { lines: foreignLine(OPENAI) })
      const { error } = (await exchange(gateway, OPENAI, { tools: [HOSTED] })).envelope()
      assert.match(error.message, /the tool "file_search" \(tools\[0\]\).*X-Gateway-Unsupported: drop/)
      assert.equal(error.param, 'tools[0]')
    })

    it('is treated by no other word', async (t) => {
      const gateway = await gatewayFor(t, { lines: foreignLine(OPENAI) })
      const got = await exchange(gateway, OPENAI, {}, { headers: { 'x-gateway-unsupported': 'ignore' } })
      assert.equal(got.status, 400)
      assert.deepEqual(
        [got.envelope().error.code, got.envelope().error.param],
        ['invalid_request', 'X-Gateway-Unsupported'],
      )
      assert.equal(foreign.requests.length, 0)
    })
  })
})
