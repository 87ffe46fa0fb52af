import assert from 'node:assert/strict'
import { before, describe, it } from 'node:test'
import Anthropic from '@anthropic-ai/sdk'
import OpenAI from 'openai'
import { type ChatAnswer, envelopeOf, jsonOf } from '../support/answer-bodies.ts'
import { cleaningUp } from '../support/clean-up.ts'
import { chat, type GatewayProcess, lookUp, post, startGatewayProcess } from '../support/gateway-process.ts'
import { until } from '../support/until.ts'

let gateway: GatewayProcess
const cleanUp = cleaningUp()
before(async () => {
  gateway = await startGatewayProcess()
  cleanUp.after(() => gateway.stop())
})

describe('the assembled gateway on its demo config', () => {
  it('prints a curl line that works', async () => {
    await until(() => /-d '.+'\n/.test(gateway.stdout), 'the curl line')
    const line = /^ +curl (\S+) -H '(.+?): (.+?)' -H '(.+?): (.+?)' -d '(.+)'$/m.exec(gateway.stdout)
    assert.ok(line, gateway.stdout)
    const [, url = '', name1 = '', value1 = '', name2 = '', value2 = '', body = ''] = line
    assert.ok(url.startsWith(`${gateway.url}/`))
    const headers = { [name1]: value1, [name2]: value2 }
    const response = await fetch(url, { method: 'POST', headers, body })
    assert.equal(response.status, 200)
    const answer = await jsonOf<ChatAnswer>(response)
    assert.equal(answer.object, 'chat.completion')
    assert.match(answer.choices[0].message.content, /demo/i)
  })

  it('listens on loopback only, and says when it is up and ready', async () => {
    assert.match(gateway.url, /^http:\/\/127\.0\.0\.1:\d+$/)
    const health = await fetch(`${gateway.url}/healthz`)
    assert.equal(health.status, 200)
    assert.deepEqual(await health.json(), { status: 'ok' })
    const ready = await fetch(`${gateway.url}/readyz`)
    assert.equal(ready.status, 200)
    assert.deepEqual(await ready.json(), { status: 'ready' })
  })

  it('answers the OpenAI SDK, plain and streamed', async () => {
    const client = new OpenAI({ baseURL: `${gateway.url}/v1`, apiKey: 'sk-demo', maxRetries: 0 })
    const ask = { model: 'chat-small', messages: [{ role: 'user' as const, content: 'Hello!' }] }
    const plain = await client.chat.completions.create(ask)
    const streamed = await client.chat.completions.stream(ask).finalChatCompletion()
    assert.ok(plain.choices[0]?.message.content)
    assert.equal(streamed.choices[0]?.message.content, plain.choices[0].message.content)
    const ids = (await client.models.list()).data.map(({ id }) => id)
    assert.ok(ids.includes('chat-small') && ids.includes('claude-demo'))
  })

  it('answers the Anthropic SDK, plain and streamed', async () => {
    const client = new Anthropic({ baseURL: gateway.url, apiKey: 'sk-demo', maxRetries: 0 })
    const messages = [{ role: 'user' as const, content: 'Hello!' }]
    const ask = { model: 'claude-demo', max_tokens: 500, messages }
    const plain = await client.messages.create(ask)
    const streamed = await client.messages.stream(ask).finalMessage()
    const text = ({ content: [block] }: Anthropic.Message) =>
      block?.type === 'text' ? block.text : undefined
    assert.match(text(plain) ?? '', /demo/)
    assert.equal(text(streamed), text(plain))
  })

  it('answers the SDKs at its other endpoints, and charges what has a price', async () => {
    const openai = new OpenAI({ baseURL: `${gateway.url}/v1`, apiKey: 'sk-demo', maxRetries: 0 })
    const anthropic = new Anthropic({ baseURL: gateway.url, apiKey: 'sk-demo', maxRetries: 0 })
    const messages = [{ role: 'user' as const, content: 'Hello!' }]
    assert.ok((await anthropic.messages.countTokens({ model: 'claude-demo', messages })).input_tokens > 0)
    const text = await openai.completions.create({ model: 'chat-small', prompt: 'Once upon a time' })
    assert.ok(text.choices[0]?.text)
    const vectors = await openai.embeddings
      .create({ model: 'embedding-failover', input: 'words' })
      .withResponse()
    assert.equal(vectors.data.data[0]?.embedding.length, 256)
    const { routing } = await lookUp(gateway.url, vectors.response.headers.get('x-request-id'))
    assert.deepEqual(
      routing?.attempts.map(({ outcome }) => outcome),
      ['empty_completion', 'completed'],
    )
    const images = await openai.images
      .generate({ model: 'image-small', prompt: 'waves', n: 3 })
      .withResponse()
    const { usage, billing } = await lookUp(gateway.url, images.response.headers.get('x-request-id'))
    assert.deepEqual([images.data.data?.length, usage?.images, billing?.charged], [3, 3, '0.033'])
  })

  it('serves "chat-failover" by its second line, on both protocols', async () => {
    const response = await post(gateway.url, chat('chat-failover'))
    assert.equal(response.status, 200)
    await response.arrayBuffer()
    const { routing } = await lookUp(gateway.url, response.headers.get('x-request-id'))
    assert.deepEqual(
      routing?.attempts.map(({ line, outcome }) => [line, outcome]),
      [
        ['broken-openai', 'upstream_error'],
        ['demo-eu', 'completed'],
      ],
    )
    const client = new Anthropic({ baseURL: gateway.url, apiKey: 'sk-demo', maxRetries: 0 })
    const messages = [{ role: 'user' as const, content: 'Hi' }]
    assert.ok(await client.messages.create({ model: 'chat-failover', max_tokens: 50, messages }))
  })

  it('knows no other path, in the error envelope', async () => {
    const response = await fetch(`${gateway.url}/v2/nothing`)
    assert.equal(response.status, 404)
    const body = await envelopeOf(response)
    assert.equal(body.error.code, 'not_found')
    assert.equal(body.request_id, response.headers.get('x-request-id'))
  })
})

describe('the demo situations', { concurrency: true }, () => {
  for (const [model, status, code] of [
    ['demo-failing', 502, 'upstream_error'],
    ['demo-overloaded', 503, 'upstream_overloaded'],
    ['demo-rate-limited', 429, 'upstream_rate_limited'],
    ['demo-unauthorized', 502, 'upstream_error'],
    ['demo-context', 400, 'context_too_long'],
    ['demo-empty', 502, 'empty_completion'],
    ['demo-filtered', 400, 'content_filtered'],
    ['demo-slow', 504, 'upstream_timeout'],
    ['demo-cut', 502, 'upstream_error'],
  ] as const) {
    it(`${model}: ${code}`, async () => {
      const response = await post(gateway.url, chat(model))
      const body = await envelopeOf(response)
      assert.equal(body.error.code, code)
      assert.equal(response.status, status)
      assert.equal(response.headers.get('x-request-id'), body.request_id)
      const entry = await lookUp(gateway.url, body.request_id)
      assert.equal(entry.error_code, code)
      assert.equal(entry.routing?.attempts.at(-1)?.line, `${model}-openai`)
      if (code === 'upstream_rate_limited') assert.equal(response.headers.get('retry-after'), '3')
    })
  }

  it('demo-flaky: answers, then upstream_error', async () => {
    const statuses = []
    for (let i = 0; i < 2; i++) {
      const response = await post(gateway.url, chat('demo-flaky'))
      await response.arrayBuffer()
      statuses.push(response.status)
    }
    assert.deepEqual(statuses, [200, 502])
  })

  it('demo-cut, streamed: output, then an error event and no regular end', async () => {
    const { text, broken } = await readBroken(
      await post(gateway.url, chat('demo-cut', 'Hi', { stream: true })),
    )
    assert.match(text, /"content":"/)
    assert.match(text, /"code":"upstream_error"/)
    assert.doesNotMatch(text, /\[DONE\]|"finish_reason":"/)
    assert.ok(broken)
  })

  it('demo-stall, streamed: output, then a timeout in the stream', async () => {
    const response = await post(gateway.url, chat('demo-stall', 'Hi', { stream: true }))
    const { text } = await readBroken(response)
    assert.match(text, /"code":"upstream_timeout"/)
    const entry = await lookUp(gateway.url, response.headers.get('x-request-id'))
    assert.equal(entry.routing?.attempts[0]?.timeout_phase, 'idle')
  })
})

async function readBroken(response: Response): Promise<{ text: string; broken: boolean }> {
  let text = ''
  try {
    for await (const chunk of response.body ?? []) text += Buffer.from(chunk as Uint8Array).toString()
  } catch {
    return { text, broken: true }
  }
  return { text, broken: false }
}
