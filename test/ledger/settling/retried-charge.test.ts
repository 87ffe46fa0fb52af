import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import {
  assertCharged,
  assertUncharged,
  billedGateway,
} from '../../middleware/billing-guard/billed-gateway.ts'
import { cleaningUp } from '../../support/clean-up.ts'
import { bodyOf, type Mode, OPENAI, OPENAI_STREAM, pathOf, readExchange } from '../../support/exchange.ts'
import {
  answerJson,
  chatAnswer,
  chatChunk,
  chatEvents,
  startUpstream,
  stream,
  type UpstreamScript,
} from '../../support/scripted-upstream.ts'

describe('of several lines', async () => {
  const cleanUp = cleaningUp()
  const first = await startUpstream()
  cleanUp.after(() => first.close())
  const second = await startUpstream()
  cleanUp.after(() => second.close())
  const DEAR = { inputPerMillion: '500', cachedInputPerMillion: '500', outputPerMillion: '900' }
  const usage = { prompt_tokens: 100, completion_tokens: 7 }

  const FAILURES: [what: string, mode: Mode, script: UpstreamScript][] = [
    ['is down', OPENAI, (res) => answerJson(res, 500, { error: { message: 'no' }, usage })],
    ['answers nothing and counts it', OPENAI, (res) => chatAnswer(res, '', { usage })],
    [
      'breaks off before its first output',
      OPENAI_STREAM,
      async (res) => {
        await stream(res, [chatChunk({ role: 'assistant' }, null, { usage })], { end: false })
        res.socket?.end()
      },
    ],
  ]
  for (const [what, mode, script] of FAILURES) {
    it(`only the line that answers is charged, at its price, if the first ${what}`, async (t) => {
      first.script = script
      second.script = (res) => (mode.stream ? stream(res, chatEvents(['Hi'])) : chatAnswer(res, 'Hi'))
      const gateway = await billedGateway(t, {
        lines: [{ url: first.url, price: DEAR }, { url: second.url }],
      })
      const got = await readExchange(await gateway.post(pathOf(mode), bodyOf(mode)))
      assert.equal(got.status, 200)
      const entry = await gateway.entry(got.requestId)
      const lines = entry.routing?.attempts.map(({ line, outcome }) => [line, outcome === 'completed'])
      assert.deepEqual(lines, [
        ['line-0', false],
        ['line-1', true],
      ])
      await assertCharged(gateway, entry, [7, 0, 0, mode.stream ? 1 : 3], 'measured')
    })

    it(`none is charged if every line ${what}`, async (t) => {
      first.script = script
      second.script = script
      const gateway = await billedGateway(t, { lines: [{ url: first.url }, { url: second.url }] })
      const got = await readExchange(await gateway.post(pathOf(mode), bodyOf(mode)))
      assert.equal(got.status, 502)
      await assertUncharged(gateway, await gateway.entry(got.requestId))
    })
  }

  it('none is charged for a request that a line refuses, or that moderation stops at once', async (t) => {
    const filtered = { choices: [{ index: 0, message: { content: '' }, finish_reason: 'content_filter' }] }
    for (const script of [
      (res) => answerJson(res, 400, { error: { message: 'no', type: 'invalid_request_error' }, usage }),
      (res) => chatAnswer(res, '', { ...filtered, usage }),
    ] satisfies UpstreamScript[]) {
      first.script = script
      const gateway = await billedGateway(t, { lines: [{ url: first.url }] })
      const got = await readExchange(await gateway.post(pathOf(OPENAI), bodyOf(OPENAI)))
      assert.equal(got.status, 400)
      await assertUncharged(gateway, await gateway.entry(got.requestId))
    }
  })
})
