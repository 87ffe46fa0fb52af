import assert from 'node:assert/strict'
import { before, describe, it } from 'node:test'
import type OpenAI from 'openai'
import type { DemoModels } from '../../../examples/gateway/demo-models/server.ts'
import { startDemoModels } from '../../../examples/gateway/demo-models/server.ts'
import { cleaningUp } from '../../support/clean-up.ts'
import { drain, openaiFor, user, WEATHER, WEATHER_EXAMPLE } from './clients.ts'

let demo: DemoModels
let openai: OpenAI

const cleanUp = cleaningUp()
before(async () => {
  demo = await startDemoModels({ apiKey: 'sk-demo', paceMs: 0 })
  cleanUp.after(() => demo.close())
  openai = openaiFor(demo.url)
})

const ask = (content: string) =>
  openai.chat.completions.create({ model: 'demo-chat', messages: user(content) })

const openaiTool = { type: 'function' as const, function: { name: 'get_weather', parameters: WEATHER } }

describe('chat completions', () => {
  it('says first that it is a demo, repeats the question, and counts what it wrote', async () => {
    const { choices, usage } = await ask('What is a gateway?')
    assert.match(
      choices[0]?.message.content ?? '',
      /^This is demo-chat, the demo model .*"What is a gateway\?"/,
    )
    assert.equal(choices[0]?.finish_reason, 'stop')
    assert.ok(usage && usage.completion_tokens > 20 && usage.prompt_tokens > 7)
    assert.equal(usage.total_tokens, usage.prompt_tokens + usage.completion_tokens)
  })

  it('streams the very text and usage of the plain answer, the usage in a chunk without choices', async () => {
    const plain = await ask('How are you?')
    const { items, error } = await drain(
      await openai.chat.completions.create({
        model: 'demo-chat',
        messages: user('How are you?'),
        stream: true,
        stream_options: { include_usage: true },
      }),
    )
    assert.equal(error, undefined)
    const text = items.map((chunk) => chunk.choices[0]?.delta.content ?? '').join('')
    assert.equal(text, plain.choices[0]?.message.content)
    const last = items.at(-1)
    assert.deepEqual(last?.choices, [])
    assert.deepEqual(last?.usage, plain.usage)
    assert.ok(items.slice(0, -1).every((chunk) => chunk.usage === null && chunk.choices.length === 1))
    assert.equal(items.at(-2)?.choices[0]?.finish_reason, 'stop')
  })

  it('says nothing of usage in a stream that did not ask for it', async () => {
    const { items } = await drain(
      await openai.chat.completions.create({ model: 'demo-chat', messages: user('Hi'), stream: true }),
    )
    assert.ok(items.length > 20)
    assert.ok(items.every((chunk) => !('usage' in chunk)))
  })

  for (const member of ['max_tokens', 'max_completion_tokens'] as const) {
    it(`stops at ${member} with finish reason length`, async () => {
      const { choices, usage } = await openai.chat.completions.create({
        model: 'demo-chat',
        messages: user('Hi'),
        [member]: 5,
      })
      assert.equal(choices[0]?.finish_reason, 'length')
      assert.equal(usage?.completion_tokens, 5)
    })
  }

  it('gives n different answers, streamed ones side by side', async () => {
    const asked = { model: 'demo-chat', messages: user('Hi'), n: 3 }
    const plain = await openai.chat.completions.create(asked)
    const texts = plain.choices.map((choice) => choice.message.content)
    assert.equal(new Set(texts).size, 3)
    const { items } = await drain(await openai.chat.completions.create({ ...asked, stream: true }))
    const streamed = ['', '', '']
    for (const { choices } of items) {
      for (const { index, delta } of choices) streamed[index] += delta.content ?? ''
    }
    assert.deepEqual(streamed, texts)
  })

  it('calls a tool that the user names, with arguments of its schema', async () => {
    const asked = { model: 'demo-chat', messages: user('Use get_weather, please'), tools: [openaiTool] }
    const plain = await openai.chat.completions.create(asked)
    const call = plain.choices[0]?.message.tool_calls?.[0]
    assert.equal(plain.choices[0]?.finish_reason, 'tool_calls')
    assert.ok(call?.type === 'function')
    assert.deepEqual(JSON.parse(call.function.arguments), WEATHER_EXAMPLE)

    const final = await openai.chat.completions.stream(asked).finalChatCompletion()
    const streamed = final.choices[0]?.message.tool_calls?.[0]
    assert.ok(streamed?.type === 'function')
    assert.deepEqual(streamed.function, { ...streamed.function, ...call.function })
  })

  it('answers in text when no tool is named, when none may be called, and once the result is there', async () => {
    const tools = [openaiTool]
    const named = user('Use get_weather, please')
    const call = {
      role: 'assistant' as const,
      tool_calls: [
        { id: 'c1', type: 'function' as const, function: { name: 'get_weather', arguments: '{}' } },
      ],
    }
    const conversations = [
      { messages: user('Hello') },
      { messages: named, tool_choice: 'none' as const },
      { messages: [...named, call, { role: 'tool' as const, tool_call_id: 'c1', content: '21 degrees' }] },
    ]
    const answers = await Promise.all(
      conversations.map((asked) => openai.chat.completions.create({ model: 'demo-chat', tools, ...asked })),
    )
    assert.deepEqual(
      answers.map(({ choices }) => choices[0]?.finish_reason),
      ['stop', 'stop', 'stop'],
    )
    assert.match(answers[2]?.choices[0]?.message.content ?? '', /"21 degrees"/)
  })

  it('writes JSON when asked, of the schema when there is one', async () => {
    const formats = [
      { type: 'json_object' as const },
      { type: 'json_schema' as const, json_schema: { name: 'weather', schema: WEATHER } },
    ]
    const [free, bound] = await Promise.all(
      formats.map(async (response_format) => {
        const asked = { model: 'demo-chat', messages: user('Hi'), response_format }
        const { choices } = await openai.chat.completions.create(asked)
        return JSON.parse(choices[0]?.message.content ?? '') as object
      }),
    )
    assert.equal(free && 'demo' in free && free.demo, true)
    assert.deepEqual(bound, WEATHER_EXAMPLE)
  })

  it('refuses what the real API refuses, naming the field', async () => {
    const create = (body: object) =>
      openai.chat.completions.create({ model: 'demo-chat', messages: user('Hi'), ...body })
    const refused: [object, string][] = [
      [{ messages: [] }, 'messages'],
      [{ max_tokens: 0 }, 'max_tokens'],
      [{ stream_options: { include_usage: true } }, 'stream_options'],
    ]
    for (const [body, param] of refused) {
      await assert.rejects(create(body), { status: 400, type: 'invalid_request_error', param })
    }
    await assert.rejects(create({ model: 'gpt-9' }), { status: 404, code: 'model_not_found' })
  })

  it('writes as much as is asked for', async () => {
    const { choices } = await ask('Write 400 words about lines.')
    const words = choices[0]?.message.content?.split(' ').length ?? 0
    assert.ok(words >= 400 && words < 430)
  })
})
