import assert from 'node:assert/strict'
import type { ServerResponse } from 'node:http'
import { describe, it, type TestContext } from 'node:test'
import Anthropic from '@anthropic-ai/sdk'
import OpenAI from 'openai'
import { type RetryOptions, withRetries } from '../../lib/client/index.ts'
import { type KeyedGateway, keyedGateway } from '../middleware/idempotency/keyed-gateway.ts'
import { KEY } from '../support/gateway.ts'
import {
  answerJson,
  chatAnswer,
  chatEvents,
  messageAnswer,
  messageEvents,
  type ScriptedUpstream,
  startUpstream,
  stream,
} from '../support/scripted-upstream.ts'

type Protocol = 'openai' | 'anthropic'
const SOON = { firstDelayMs: 1 }
const messages = [{ role: 'user' as const, content: 'Hello' }]

/** A gateway whose upstream fails so many times before it answers. */
async function failing(
  t: TestContext,
  protocol: Protocol,
  times: number,
): Promise<[KeyedGateway, ScriptedUpstream]> {
  const whole = (res: ServerResponse, streams: boolean) => {
    if (streams)
      return stream(res, protocol === 'openai' ? chatEvents(['Hel', 'lo']) : messageEvents(['Hel', 'lo']))
    return protocol === 'openai' ? chatAnswer(res) : messageAnswer(res)
  }
  const upstream = await startUpstream((res, { json }, index) =>
    index < times ? answerJson(res, 500, {}) : whole(res, json.stream === true),
  )
  t.after(() => upstream.close())
  const line = { protocol, circuit: { minimumCalls: 1000 } }
  return [await keyedGateway(t, { lines: [upstream.url], line }), upstream]
}

const openaiOf = (url: string, options: RetryOptions = SOON) =>
  new OpenAI({ baseURL: `${url}/v1`, apiKey: KEY, maxRetries: 0, fetch: withRetries(fetch, options) })
const anthropicOf = (url: string, options: RetryOptions = SOON) =>
  new Anthropic({ baseURL: url, apiKey: KEY, maxRetries: 0, fetch: withRetries(fetch, options) })

const SAYS: Record<Protocol, (url: string, streams: boolean) => Promise<string>> = {
  async openai(url, streams) {
    const { completions } = openaiOf(url).chat
    if (!streams)
      return (await completions.create({ model: 'chat', messages })).choices[0]?.message.content ?? ''
    let said = ''
    for await (const { choices } of await completions.create({ model: 'chat', messages, stream: true })) {
      said += choices[0]?.delta.content ?? ''
    }
    return said
  },
  async anthropic(url, streams) {
    const params = { model: 'chat', max_tokens: 50, messages }
    const api = anthropicOf(url).messages
    const { content } = streams ? await api.stream(params).finalMessage() : await api.create(params)
    return content.map((block) => (block.type === 'text' ? block.text : '')).join('')
  },
}

describe('an official SDK that sends through the client', { concurrency: 4 }, () => {
  for (const protocol of ['openai', 'anthropic'] as const) {
    for (const streams of [false, true]) {
      it(`has its ${streams ? 'stream' : 'answer'} from the fourth attempt, all under one key (${protocol})`, async (t) => {
        const [gateway, upstream] = await failing(t, protocol, 3)
        assert.equal(await SAYS[protocol](gateway.url, streams), 'Hello')
        assert.equal(upstream.requests.length, 4)
        const { data } = await callsOf(gateway)
        assert.equal(data.length, 4)
        assert.equal(new Set(data.map(({ idempotency_key }) => idempotency_key)).size, 1)
      })
    }
  }

  it('raises its own error behind the last attempt', async (t) => {
    const [[one, openaiUpstream], [other, anthropicUpstream]] = await Promise.all([
      failing(t, 'openai', 99),
      failing(t, 'anthropic', 99),
    ])
    const openai = openaiOf(one.url).chat.completions.create({ model: 'chat', messages })
    await assert.rejects(
      openai,
      (error) => error instanceof OpenAI.InternalServerError && error.code === 'upstream_error',
    )
    const anthropic = anthropicOf(other.url).messages.create({ model: 'chat', max_tokens: 50, messages })
    await assert.rejects(anthropic, (error) => error instanceof Anthropic.InternalServerError)
    assert.deepEqual([openaiUpstream.requests.length, anthropicUpstream.requests.length], [4, 4])
  })

  it('can be aborted in a wait, and timed out over all attempts', async (t) => {
    const [gateway, upstream] = await failing(t, 'openai', 99)
    const controller = new AbortController()
    const onRetry = () => void setImmediate(() => controller.abort())
    const aborted = openaiOf(gateway.url, { firstDelayMs: 60_000, onRetry }).chat.completions.create(
      { model: 'chat', messages },
      { signal: controller.signal },
    )
    await assert.rejects(aborted, (error) => error instanceof OpenAI.APIUserAbortError)
    const late = openaiOf(gateway.url, { firstDelayMs: 60_000 }).chat.completions.create(
      { model: 'chat', messages },
      { timeout: 2000 },
    )
    await assert.rejects(late, (error) => error instanceof OpenAI.APIConnectionTimeoutError)
    assert.equal(upstream.requests.length, 2)
  })
})

/** The calls of the account, once all are logged. */
async function callsOf({ url }: KeyedGateway): Promise<{ data: { idempotency_key: string | null }[] }> {
  for (;;) {
    const response = await fetch(`${url}/v1/calls`, { headers: { authorization: `Bearer ${KEY}` } })
    const list = (await response.json()) as { data: { path: string; idempotency_key: string | null }[] }
    const data = list.data.filter(({ path }) => !path.startsWith('/v1/calls'))
    if (data.length >= 4) return { data }
  }
}
