import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { completionAnswer, embeddingAnswer, imageAnswer } from '../../support/endpoints.ts'
import { answerJson, stream } from '../../support/scripted-upstream.ts'
import { suiteGateway } from '../../support/suite-gateway.ts'
import { anthropicOf, openaiOf } from './clients.ts'

const VECTORS = [
  [0.5, -1.25, 3],
  [2, 0.125, -8],
]
const base64Of = (vector: readonly number[]) =>
  Buffer.from(new Float32Array(vector).buffer).toString('base64')

const chunk = (text: string, finish: string | null = null, extra: object = {}) =>
  `data: ${JSON.stringify(completionAnswer('', { choices: [{ text, index: 0, logprobs: null, finish_reason: finish }], usage: null, ...extra }))}\n\n`
const usage = `data: ${JSON.stringify(completionAnswer('', { choices: [], usage: { prompt_tokens: 4, completion_tokens: 3, total_tokens: 7 } }))}\n\n`
const DONE = 'data: [DONE]\n\n'

describe('the official SDKs', async () => {
  const kinds = ['chat', 'embedding', 'image'] as const
  const { upstream, gateway } = await suiteGateway((url) => ({
    lines: [
      { url, models: Object.fromEntries(kinds.map((kind) => [kind, 'upstream'])) },
      { url, protocol: 'anthropic', models: { chat: 'upstream-claude' } },
    ],
    config: { models: kinds.map((kind) => ({ id: kind, kind })) },
  }))
  const openai = openaiOf(gateway.url)
  const anthropic = anthropicOf(gateway.url)
  const sent = () => upstream.requests.at(-1)

  it('openai.completions: a text', async () => {
    upstream.script = (res) => answerJson(res, 200, completionAnswer(' there was'))
    const answer = await openai.completions.create({ model: 'chat', prompt: 'Once', max_tokens: 9 })
    assert.equal(answer.choices[0]?.text, ' there was')
    assert.deepEqual(sent()?.json, { model: 'upstream', prompt: 'Once', max_tokens: 9 })
  })

  it('openai.completions: a stream, without the usage chunk that the caller did not ask for', async () => {
    upstream.script = (res) =>
      stream(res, [chunk(' there'), chunk(' '), chunk('was'), chunk('', 'stop'), usage, DONE])
    const parts = await openai.completions.create({ model: 'chat', prompt: 'Once', stream: true })
    let text = ''
    const usages = []
    for await (const { choices, usage: reported } of parts) {
      text += choices[0]?.text ?? ''
      if (reported) usages.push(reported)
    }
    assert.equal(text, ' there was')
    assert.deepEqual(usages, [])
    assert.deepEqual(sent()?.json.stream_options, { include_usage: true })
  })

  it('openai.completions: a stream with the usage that the caller asked for', async () => {
    upstream.script = (res) => stream(res, [chunk('Hi'), chunk('', 'stop'), usage, DONE])
    const asked = { stream: true, stream_options: { include_usage: true } } as const
    const parts = await openai.completions.create({ model: 'chat', prompt: [[1, 2, 3]], ...asked })
    const usages = []
    for await (const { usage: reported } of parts) if (reported) usages.push(reported.total_tokens)
    assert.deepEqual(usages, [7])
  })

  it('openai.embeddings: its own default, which is base64', async () => {
    upstream.script = (res, { json }) =>
      answerJson(
        res,
        200,
        embeddingAnswer(json.encoding_format === 'base64' ? VECTORS.map(base64Of) : VECTORS),
      )
    const { data, usage: reported } = await openai.embeddings.create({
      model: 'embedding',
      input: ['a', 'b'],
    })
    assert.equal(sent()?.json.encoding_format, 'base64')
    assert.deepEqual(
      data.map(({ embedding }) => embedding),
      VECTORS,
    )
    assert.equal(reported.prompt_tokens, 7)
  })

  for (const input of ['text', ['a', 'b'], [1, 2, 3], [[1], [2, 3]]]) {
    it(`openai.embeddings: floats of ${JSON.stringify(input)}`, async () => {
      upstream.script = (res) => answerJson(res, 200, embeddingAnswer(VECTORS))
      const asked = { model: 'embedding', input, encoding_format: 'float', dimensions: 3 } as const
      const { data } = await openai.embeddings.create(asked)
      assert.deepEqual(
        data.map(({ embedding }) => embedding),
        VECTORS,
      )
      assert.deepEqual(sent()?.json, { ...asked, model: 'upstream' })
    })
  }

  it('openai.images: base64 and addresses', async () => {
    const images = [
      { b64_json: 'iVBORw0KGgo=', revised_prompt: 'a cat' },
      { url: 'https://images.example/1.png' },
    ]
    upstream.script = (res) => answerJson(res, 200, imageAnswer(images))
    const { data } = await openai.images.generate({
      model: 'image',
      prompt: 'a cat',
      n: 2,
      size: '1024x1024',
    })
    assert.deepEqual(data, images)
    assert.deepEqual(sent()?.json, { model: 'upstream', prompt: 'a cat', n: 2, size: '1024x1024' })
  })

  it('openai.images: a stream', async () => {
    const partial = { type: 'image_generation.partial_image', b64_json: 'AA==', partial_image_index: 0 }
    const whole = { type: 'image_generation.completed', b64_json: 'AAAA' }
    upstream.script = (res) => {
      res.writeHead(200, { 'content-type': 'text/event-stream' })
      res.end(
        [partial, whole].map((event) => `event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`).join(''),
      )
    }
    const stream = await openai.images.generate({ model: 'image', prompt: 'a cat', stream: true })
    const events: object[] = []
    for await (const event of stream) events.push(event)
    assert.deepEqual(events, [partial, whole])
  })

  it('anthropic.messages.countTokens: a count, only of a line of its own protocol', async () => {
    upstream.script = (res) => answerJson(res, 200, { input_tokens: 2095 })
    const messages = [{ role: 'user' as const, content: 'Hello' }]
    const tools = [{ name: 'look', input_schema: { type: 'object' as const } }]
    const { input_tokens } = await anthropic.messages.countTokens({
      model: 'chat',
      messages,
      tools,
      system: 'Be brief',
    })
    assert.equal(input_tokens, 2095)
    assert.equal(sent()?.path, '/v1/messages/count_tokens')
    assert.equal(sent()?.json.model, 'upstream-claude')
    assert.match(String(sent()?.headers['anthropic-version']), /^\d{4}-\d\d-\d\d$/)
  })
})
