import assert from 'node:assert/strict'
import { beforeEach, describe, it } from 'node:test'
import { createOpenRouter } from '@openrouter/ai-sdk-provider'
import { OpenRouter } from '@openrouter/sdk'
import type { ChatResult } from '@openrouter/sdk/models'
import { generateText, streamText } from 'ai'
import { jsonOf } from '../../support/answer-bodies.ts'
import { assembledGateway } from '../../support/assembled-gateway.ts'
import { cleaningUp } from '../../support/clean-up.ts'
import { KEY } from '../../support/gateway.ts'
import { answerJson, chatAnswer, chatEvents, startUpstream, stream } from '../../support/scripted-upstream.ts'
import { untilAsync } from '../../support/until.ts'

describe("OpenRouter's own clients", async () => {
  const cleanUp = cleaningUp()
  const upstream = await startUpstream((res, { json }) => {
    if (json.model === 'up-first') answerJson(res, 503, { error: { message: 'overloaded' } })
    else if (json.stream) return stream(res, chatEvents(['from ', 'second']))
    else chatAnswer(res, 'from second', { system_fingerprint: null })
    return undefined
  })
  cleanUp.after(() => upstream.close())
  const { url, send } = await assembledGateway(cleanUp, {
    models: ['first', 'second'].map((id) => ({ id, kind: 'chat' })),
    lines: [
      {
        id: 'line',
        provider: 'scripted',
        protocol: 'openai',
        endpoints: ['chat/completions'],
        baseUrl: `${upstream.url}/v1`,
        models: { first: 'up-first', second: 'up-second' },
        circuit: { minimumCalls: 1000 },
      },
    ],
  })
  const sdk = new OpenRouter({ apiKey: KEY, serverURL: `${url}/v1`, retryConfig: { strategy: 'none' } })
  const provider = createOpenRouter({ baseURL: `${url}/v1`, apiKey: KEY })
  const asked = () => upstream.requests.map(({ json }) => json.model)

  beforeEach(() => {
    upstream.requests.length = 0
  })

  it('name fallback models', async () => {
    const messages = [{ role: 'user' as const, content: 'hi' }]
    const models = ['first', 'second']
    const answer = (await sdk.chat.send({ chatRequest: { models, messages, stream: false } })) as ChatResult
    assert.equal(answer.choices[0]?.message.content, 'from second')
    const call = { prompt: 'hi', maxRetries: 0 }
    const { text } = await generateText({
      ...call,
      model: provider.chat('first', { extraBody: { models } }),
    })
    assert.equal(text, 'from second')
    const streamed = streamText({ ...call, model: provider.chat('first', { extraBody: { models } }) })
    assert.equal(await streamed.text, 'from second')
    assert.deepEqual(asked(), Array(3).fill(['up-first', 'up-second']).flat())
    await untilAsync(async () => {
      const { data } = await jsonOf<{ data: { model: string }[] }>(await send('/v1/calls'))
      return data.filter(({ model }) => model === 'second').length === 3
    }, 'the log names the model that has served')
  })

  it('constrain the lines, and ask for reasoning and usage', async () => {
    const model = provider.chat('second', {
      provider: { only: ['scripted'] },
      reasoning: { effort: 'low' },
      usage: { include: true },
    })
    const { usage } = await generateText({ model, prompt: 'hi', maxRetries: 0 })
    assert.deepEqual([usage.inputTokens, usage.outputTokens], [7, 3])
    const sent = upstream.requests[0]?.json
    assert.deepEqual([sent?.provider, sent?.usage, sent?.reasoning], [undefined, undefined, undefined])
    assert.equal(sent?.reasoning_effort, 'low')
    const elsewhere = provider.chat('second', { provider: { only: ['another'] } })
    await assert.rejects(
      generateText({ model: elsewhere, prompt: 'hi', maxRetries: 0 }),
      /provider constraint/,
    )
  })

  it('read a refusal as far as the page says', async () => {
    const refused = { chatRequest: { model: 'none', messages: [], stream: false as const } }
    await assert.rejects(sdk.chat.send(refused), { name: 'ResponseValidationError', statusCode: 400 })
    await assert.rejects(sdk.models.list(), { name: 'ResponseValidationError', statusCode: 200 })
  })
})
