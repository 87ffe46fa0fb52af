import assert from 'node:assert/strict'
import { beforeEach, describe, it } from 'node:test'
import { cleaningUp } from '../../../support/clean-up.ts'
import { answer, eventsOf, exchange, gatewayFor, MODES, modeName, saidTo } from '../../../support/exchange.ts'
import { answerJson, stream } from '../../../support/scripted-upstream.ts'
import { acrossFrom, refuse, startTwoProtocols } from '../../../support/two-protocols.ts'

describe('lines of two protocols', async () => {
  const { own, foreign, linesFor, clear, close } = await startTwoProtocols()
  beforeEach(clear)
  cleaningUp().after(close)

  for (const mode of MODES) {
    const across = acrossFrom(mode)
    const path = across.protocol === 'openai' ? '/v1/chat/completions' : '/v1/messages'

    describe(`a line of another protocol (caller: ${modeName(mode)})`, () => {
      it('is asked in its own words and answers in the caller’s', async (t) => {
        foreign.script = (res) => answer(res, across, 'Bonjour')
        const gateway = await gatewayFor(t, { lines: linesFor(mode).slice(1) })
        const got = await exchange(gateway, mode)
        assert.equal(got.status, 200)
        assert.equal(saidTo(mode, got), 'Bonjour')
        const [request] = foreign.requests
        assert.equal(request?.path, path)
        assert.equal(request?.json.model, 'upstream-chat-0')
        assert.equal(request?.json.max_tokens, mode.protocol === 'openai' ? 4096 : 100)
      })

      it('is sent the headers of its own protocol, and none of the caller’s', async (t) => {
        foreign.script = (res) => answer(res, across)
        const gateway = await gatewayFor(t, { lines: linesFor(mode).slice(1) })
        const headers = { 'anthropic-version': '1999-01-01', 'anthropic-beta': 'mine' }
        await exchange(gateway, mode, {}, { headers })
        const sent = foreign.requests[0]?.headers ?? {}
        const anthropic = across.protocol === 'anthropic'
        assert.equal(sent['anthropic-version'], anthropic ? '2023-06-01' : undefined)
        assert.equal(sent['anthropic-beta'], undefined)
        assert.equal(sent['x-api-key'], anthropic ? 'upstream-key-0' : undefined)
        assert.equal(sent.authorization, anthropic ? undefined : 'Bearer upstream-key-0')
      })

      it('is metered by its own accounting, and the log shows its protocol', async (t) => {
        foreign.script = (res) => answer(res, across, 'Bonjour')
        const gateway = await gatewayFor(t, { lines: linesFor(mode).slice(1) })
        const { requestId } = await exchange(gateway, mode)
        const { usage, protocol, routing, outcome } = await gateway.entry(requestId)
        assert.equal(outcome, 'completed')
        assert.equal(usage?.input_tokens, 7)
        assert.equal(usage?.source, 'measured')
        assert.equal(protocol, mode.protocol)
        assert.deepEqual(
          routing?.attempts.map((attempt) => [attempt.line, attempt.protocol]),
          [['foreign', across.protocol]],
        )
      })

      it('takes over from a line of the caller’s protocol that fails', async (t) => {
        own.script = refuse(503, 'overloaded_error')
        foreign.script = (res) => answer(res, across, 'Bonjour')
        const gateway = await gatewayFor(t, { lines: linesFor(mode) })
        const got = await exchange(gateway, mode)
        assert.equal(saidTo(mode, got), 'Bonjour')
        const { routing } = await gateway.entry(got.requestId)
        assert.deepEqual(
          routing?.attempts.map(({ line, protocol, outcome }) => [line, protocol, outcome]),
          [
            ['own', mode.protocol, 'upstream_overloaded'],
            ['foreign', across.protocol, 'completed'],
          ],
        )
      })

      it('is followed by a line of the caller’s protocol when it fails', async (t) => {
        own.script = (res) => answer(res, mode, 'Hello')
        foreign.script = refuse(503, 'overloaded_error')
        const gateway = await gatewayFor(t, { lines: linesFor(mode).toReversed() })
        const got = await exchange(gateway, mode)
        assert.equal(saidTo(mode, got), 'Hello')
        assert.equal(foreign.requests.length, 1)
      })

      it('comes second at equal priority, whatever its weight', async (t) => {
        own.script = (res) => answer(res, mode, 'Hello')
        const lines = linesFor(mode, { priority: 1, weight: 1 }, { priority: 1, weight: 9 }).toReversed()
        const gateway = await gatewayFor(t, { lines })
        assert.equal(saidTo(mode, await exchange(gateway, mode)), 'Hello')
        assert.equal(foreign.requests.length, 0)
      })

      it('that answers nothing is passed over', async (t) => {
        own.script = (res) => answer(res, mode, 'Hello')
        foreign.script = (res) =>
          across.stream ? stream(res, eventsOf(across, [])) : answer(res, across, '')
        const gateway = await gatewayFor(t, { lines: linesFor(mode).toReversed() })
        const got = await exchange(gateway, mode)
        assert.equal(saidTo(mode, got), 'Hello')
        const { routing } = await gateway.entry(got.requestId)
        assert.equal(routing?.attempts[0]?.outcome, 'empty_completion')
      })

      it('that refuses the request is the last one asked, and its words stay in the log', async (t) => {
        foreign.script = (res) =>
          answerJson(res, 400, {
            error: { type: 'invalid_request_error', message: 'no', param: 'messages[9]' },
          })
        const gateway = await gatewayFor(t, { lines: linesFor(mode).toReversed() })
        const got = await exchange(gateway, mode)
        assert.equal(got.status, 400)
        const { error } = got.envelope()
        assert.equal(error.type, 'invalid_request_error')
        assert.equal(error.param, undefined)
        assert.equal(own.requests.length, 0)
      })
    })
  }
})
