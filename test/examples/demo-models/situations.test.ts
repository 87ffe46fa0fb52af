import assert from 'node:assert/strict'
import { before, describe, it } from 'node:test'
import Anthropic from '@anthropic-ai/sdk'
import OpenAI from 'openai'
import type { DemoModels } from '../../../examples/gateway/demo-models/server.ts'
import { startDemoModels } from '../../../examples/gateway/demo-models/server.ts'
import { cleaningUp } from '../../support/clean-up.ts'
import { anthropicFor, callsTo, drain, openaiFor, user, withServer } from './clients.ts'

const SLOW_MS = 120

let demo: DemoModels
let ask: ReturnType<typeof callsTo>

const cleanUp = cleaningUp()
before(async () => {
  demo = await startDemoModels({ apiKey: 'sk-demo', paceMs: 0, slowMs: SLOW_MS })
  cleanUp.after(() => demo.close())
  ask = callsTo(demo.url)
})

describe('provoked refusals', () => {
  for (const [model, openaiError, anthropicError] of [
    ['demo-failing', { status: 500, type: 'server_error' }, { status: 500, type: 'api_error' }],
    ['demo-overloaded', { status: 503, type: 'server_error' }, { status: 529, type: 'overloaded_error' }],
    [
      'demo-unauthorized',
      { status: 401, code: 'invalid_api_key' },
      { status: 401, type: 'authentication_error' },
    ],
    [
      'demo-context',
      { status: 400, code: 'context_length_exceeded', param: 'messages' },
      {
        status: 400,
        type: 'invalid_request_error',
        apiMessage: /^prompt is too long: \d+ tokens > 1 maximum$/,
      },
    ],
    [
      'demo-rate-limited',
      { status: 429, code: 'rate_limit_exceeded' },
      { status: 429, type: 'rate_limit_error' },
    ],
  ] as const) {
    it(`${model}, plain and streamed, on both protocols`, async () => {
      await assert.rejects(ask.chat(model), openaiError)
      await assert.rejects(ask.chatStream(model), openaiError)
      await assert.rejects(ask.message(model), anthropicError)
      await assert.rejects(ask.messageStream(model), anthropicError)
    })
  }

  it('demo-rate-limited says when to come back', async () => {
    for (const call of [ask.chat, ask.message]) {
      await assert.rejects(call('demo-rate-limited'), (error) => {
        assert.ok(error instanceof OpenAI.APIError || error instanceof Anthropic.APIError)
        assert.equal(error.headers?.get('retry-after'), '3')
        return true
      })
    }
  })

  it('demo-flaky fails every second call, whichever protocol it comes by', async () => {
    await withServer({}, async ({ url }) => {
      const { chat, message, chatStream, messageStream } = callsTo(url)
      for (const [answered, failed] of [
        [chat, message],
        [messageStream, chatStream],
      ] as const) {
        await answered('demo-flaky')
        await assert.rejects(failed('demo-flaky') as Promise<unknown>, { status: 500 })
      }
    })
  })
})

describe('provoked answers', () => {
  it('demo-empty answers 200 with no output', async () => {
    const plain = await ask.chat('demo-empty')
    assert.equal(plain.choices[0]?.message.content, '')
    assert.equal(plain.usage?.completion_tokens, 0)
    const { items } = await drain(await ask.chatStream('demo-empty'))
    assert.ok(items.every((chunk) => !chunk.choices[0]?.delta.content))
    assert.equal(items.at(-1)?.choices[0]?.finish_reason, 'stop')
    const answer = await ask.message('demo-empty')
    assert.deepEqual(answer.content, [])
    assert.equal(answer.usage.output_tokens, 0)
    const events = (await drain(await ask.messageStream('demo-empty'))).items.map(({ type }) => type)
    assert.deepEqual(events, ['message_start', 'message_delta', 'message_stop'])
  })

  it('demo-filtered answers 200, stopped by moderation', async () => {
    const plain = await ask.chat('demo-filtered')
    assert.equal(plain.choices[0]?.finish_reason, 'content_filter')
    assert.equal(plain.choices[0]?.message.content, null)
    const { items } = await drain(await ask.chatStream('demo-filtered'))
    assert.equal(items.at(-1)?.choices[0]?.finish_reason, 'content_filter')
    const answer = await ask.message('demo-filtered')
    assert.equal(answer.stop_reason, 'refusal')
    assert.equal(answer.stop_details?.type, 'refusal')
    const ends = (await drain(await ask.messageStream('demo-filtered'))).items.at(-2)
    assert.ok(ends?.type === 'message_delta')
    assert.equal(ends.delta.stop_reason, 'refusal')
  })

  it('demo-cut resets the connection after some output and before any ending', async () => {
    const openaiStyle = await drain(await ask.chatStream('demo-cut'))
    assert.ok(openaiStyle.error instanceof Error)
    assert.ok(openaiStyle.items.some((chunk) => chunk.choices[0]?.delta.content))
    assert.ok(openaiStyle.items.every((chunk) => chunk.choices[0]?.finish_reason === null))
    const anthropicStyle = await drain(await ask.messageStream('demo-cut'))
    assert.ok(anthropicStyle.error instanceof Error)
    const types = anthropicStyle.items.map(({ type }) => type)
    assert.ok(types.includes('content_block_delta') && !types.includes('message_delta'))
    await assert.rejects(ask.chat('demo-cut'))
    await assert.rejects(ask.message('demo-cut'))
  })

  it('demo-stall starts its answer and then says nothing more', async () => {
    const givesUp = { signal: AbortSignal.timeout(2000) }
    const asked = { model: 'demo-stall', messages: user('Hi'), max_tokens: 100, stream: true as const }
    const openaiStyle = await drain(await openaiFor(demo.url).chat.completions.create(asked, givesUp))
    assert.ok(openaiStyle.items.some((chunk) => chunk.choices[0]?.delta.content))
    assert.ok(openaiStyle.items.every((chunk) => chunk.choices[0]?.finish_reason === null))
    const giveUp = { signal: AbortSignal.timeout(2000) }
    const types = (await drain(await anthropicFor(demo.url).messages.create(asked, giveUp))).items.map(
      ({ type }) => type,
    )
    assert.ok(types.includes('content_block_delta') && !types.includes('content_block_stop'))
  })

  it('demo-slow sends nothing, not even the head, before its time', async () => {
    for (const call of [
      () => ask.chat('demo-slow').asResponse(),
      () => ask.messageStream('demo-slow').asResponse(),
    ]) {
      const started = performance.now()
      const response = await call()
      assert.ok(performance.now() - started >= SLOW_MS * 0.8)
      assert.equal(response.status, 200)
      await response.text()
    }
  })

  it('demo-slow lets go of a caller that leaves', { timeout: 30_000 }, async () => {
    // Were the wait to go on, its timer would keep this file's process alive for a minute.
    const own = await startDemoModels({ slowMs: 60_000 })
    const leaving = { signal: AbortSignal.timeout(1000) }
    const asked = { model: 'demo-slow', messages: user('Hi') }
    await assert.rejects(openaiFor(own.url).chat.completions.create(asked, leaving))
    await own.close()
  })
})
