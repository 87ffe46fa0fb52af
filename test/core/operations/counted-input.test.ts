import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { OPERATIONS } from '../../../lib/core/operations/index.ts'

type Json = Record<string, unknown>

const PER_REQUEST = 3
const PER_MESSAGE = 4
const PER_IMAGE = 1200
const PER_FILE = 4000
const PER_TEXT = 1_000_000

/** The facts of a body, with an estimator that takes note of what it reads, and estimates all of it the same. */
function factsOf(path: string, json: Json) {
  const operation = OPERATIONS.find((one) => one.path === path)
  assert.ok(operation, path)
  const read: string[] = []
  const { estimatedInputTokens, ...facts } = operation.facts(
    json,
    Buffer.from(JSON.stringify(json)),
    (text) => {
      read.push(text)
      return PER_TEXT
    },
  )
  return { ...facts, read, estimatedInputTokens, constant: estimatedInputTokens % PER_TEXT }
}

const chat = (members: Json) =>
  factsOf('/v1/chat/completions', { model: 'm', messages: [{ role: 'user', content: 'Hi' }], ...members })
const said = (...content: unknown[]) =>
  chat({ messages: content.map((each) => ({ role: 'user', content: each })) })
const turn = (members: Json) => chat({ messages: [{ role: 'assistant', ...members }] })

describe('what is counted of a chat', () => {
  it('are its texts, each message, and the request', () => {
    const { read, constant, messages } = said('one', [{ type: 'text', text: 'two' }], null, [])
    assert.deepEqual(read, ['one', 'two'])
    assert.equal(constant, PER_REQUEST + 4 * PER_MESSAGE)
    assert.equal(messages, 4)
  })

  it('are members of a message beyond its content, and not its role or the id of a call', () => {
    const { read } = turn({ content: 'a', name: 'Ann', reasoning_content: 'why', tool_call_id: 'call_1' })
    assert.deepEqual(read, ['Ann', 'why', 'a'])
    assert.deepEqual(turn({ function_call: { name: 'f', arguments: '{}' } }).read, [
      '{"name":"f","arguments":"{}"}',
    ])
  })

  it('are parts: an image, a refusal, and anything else as a file', () => {
    const parts = [
      { type: 'image_url', image_url: { url: 'https://a.test' }, text: 'not read' },
      { type: 'refusal', refusal: 'no' },
      { type: 'file', file: {} },
      { type: 'image_url' },
      { type: 'input_audio', text: null },
    ]
    const { read, constant, images, featureParams } = said('Hi', parts)
    assert.deepEqual(read, ['Hi', 'no'])
    assert.equal(constant, PER_REQUEST + 2 * PER_MESSAGE + 2 * PER_IMAGE + 2 * PER_FILE)
    assert.equal(images, 2)
    assert.deepEqual([...(featureParams ?? [])], [['vision', 'messages[1].content[0]']])
  })

  it('are names and arguments of calls, where there are any', () => {
    const calls = [
      { type: 'function', function: { name: 'f', arguments: '{"a":1}' } },
      { type: 'function', function: { name: 7, arguments: {} } },
      { type: 'function', function: 'f' },
      { type: 'function', function: null },
      { type: 'custom' },
    ]
    assert.deepEqual(turn({ tool_calls: calls }).read, ['f {"a":1}', ' {}', '', '', ''])
    assert.deepEqual(turn({ tool_calls: null }).read, [])
  })

  it('are the tools, a prediction and a schema as they are written', () => {
    const tools = [{ type: 'function' }]
    const functions = [{ name: 'f' }]
    const prediction = { type: 'content', content: 'x' }
    const response_format = { type: 'json_schema', json_schema: {} }
    assert.deepEqual(chat({ tools, functions, prediction, response_format }).read.slice(1), [
      JSON.stringify(tools),
      JSON.stringify(functions),
      JSON.stringify(prediction),
      JSON.stringify(response_format),
    ])
    assert.deepEqual(chat({ response_format: { type: 'json_object' }, metadata: { a: 'b' } }).read, ['Hi'])
  })

  it('are its tools by number, and functions only without them', () => {
    const counts = (members: Json) => {
      const { tools, featureParams } = chat(members)
      return [tools, featureParams?.get('tools')]
    }
    assert.deepEqual(counts({ tools: [{ type: 'a' }, { type: 'b' }], functions: [{ name: 'f' }] }), [
      2,
      'tools',
    ])
    assert.deepEqual(counts({ tools: [], functions: [{ name: 'f' }] }), [1, 'functions'])
    assert.deepEqual(counts({ functions: [{ name: 'f' }] }), [1, 'functions'])
    assert.deepEqual(counts({ tools: [], functions: [] }), [0, undefined])
    assert.deepEqual(counts({}), [0, undefined])
  })

  it('asks for features by name, and for none by what means nothing', () => {
    const asked = (members: Json) => [...(chat(members).featureParams ?? [])]
    assert.deepEqual(asked({ stream: true }), [['stream', 'stream']])
    assert.deepEqual(asked({ response_format: { type: 'json_object' } }), [['json', 'response_format']])
    assert.deepEqual(asked({ reasoning_effort: 'low' }), [['reasoning', 'reasoning_effort']])
    const nothing = { stream: false, response_format: { type: 'text' }, reasoning_effort: 'none' }
    assert.deepEqual(asked(nothing), [])
    assert.deepEqual(asked({ stream: null, response_format: null, reasoning_effort: null }), [])
    assert.deepEqual([chat({}).stream, chat({ stream: true }).stream], [false, true])
    assert.deepEqual([...(chat({ stream: true }).features ?? [])], ['stream'])
  })

  it('is the larger of two limits of its output', () => {
    const most = (members: Json) => chat(members).maxOutputTokens
    assert.equal(most({ max_tokens: 9, max_completion_tokens: 7 }), 9)
    assert.equal(most({ max_tokens: 5, max_completion_tokens: 7 }), 7)
    assert.equal(most({ max_tokens: 5, max_completion_tokens: null }), 5)
    assert.equal(most({ max_tokens: null, max_completion_tokens: 7 }), 7)
    assert.equal(most({ max_tokens: null }), undefined)
  })
})

describe('what is counted of a text to be completed', () => {
  const completion = (members: Json) => factsOf('/v1/completions', { model: 'm', ...members })

  it('is each text, with the suffix each time', () => {
    const { read, estimatedInputTokens, windowTokens, answers } = completion({
      prompt: ['one', 'two'],
      suffix: 'end',
      n: 2,
    })
    assert.deepEqual(read, ['one', 'two', 'end'])
    assert.equal(estimatedInputTokens, PER_REQUEST + 4 * PER_TEXT)
    assert.equal(windowTokens, PER_REQUEST + 2 * PER_TEXT)
    assert.equal(answers, 4)
    assert.equal(completion({ prompt: 'one', suffix: '' }).estimatedInputTokens, PER_REQUEST + PER_TEXT)
  })

  it('are tokens as they are, of one text or of several', () => {
    const one = completion({ prompt: [1, 2, 3] })
    assert.deepEqual([one.read, one.estimatedInputTokens, one.windowTokens, one.answers], [[], 6, 6, 1])
    const several = completion({ prompt: [[1, 2, 3], [4], [5, 6]] })
    assert.deepEqual([several.estimatedInputTokens, several.windowTokens, several.answers], [9, 6, 3])
  })

  it('are all texts that are written, of which the best come back', () => {
    assert.equal(completion({ prompt: 'a', n: 2, best_of: 5 }).answers, 5)
    assert.equal(completion({ prompt: 'a', n: 2, best_of: 1 }).answers, 2)
    assert.equal(completion({ prompt: 'a' }).answers, 1)
    const { maxOutputTokens, messages, tools, images, stream } = completion({ prompt: 'a', max_tokens: 0 })
    assert.deepEqual([maxOutputTokens, messages, tools, images, stream], [0, 0, 0, 0, false])
    assert.equal(completion({ prompt: 'a', max_tokens: null }).maxOutputTokens, undefined)
  })
})

describe('what is counted of a message', () => {
  const message = (members: Json) =>
    factsOf('/v1/messages', {
      model: 'm',
      max_tokens: 9,
      messages: [{ role: 'user', content: 'Hi' }],
      ...members,
    })
  const blocks = (...content: unknown[]) => message({ messages: [{ role: 'user', content }] })

  it('are the system, texts, thinking and the input of tools', () => {
    const { read, constant, messages } = message({
      system: 'Be brief.',
      messages: [
        { role: 'user', content: 'one' },
        {
          role: 'assistant',
          content: [
            { type: 'thinking', thinking: 'why', signature: 's' },
            { type: 'text', text: 'two' },
            { type: 'tool_use', id: 'toolu_1', name: 'f', input: { a: 1 } },
          ],
        },
      ],
    })
    assert.deepEqual(read, ['Be brief.', 'one', 'why', 'two', '{"a":1}'])
    assert.equal(constant, PER_REQUEST + 2 * PER_MESSAGE)
    assert.equal(messages, 2)
    assert.deepEqual(message({ system: [{ type: 'text', text: 'a' }] }).read, ['a', 'Hi'])
  })

  it('are results of tools, with what they hold, but no result inside', () => {
    const image = { type: 'image', source: {} }
    const { read, constant, images, featureParams } = blocks(
      { type: 'tool_result', content: 'one' },
      {
        type: 'tool_result',
        content: [{ type: 'text', text: 'two' }, image, { type: 'tool_result', content: 'x' }],
      },
      { type: 'tool_result' },
      { type: 'tool_result', content: [null, 'text'] },
      image,
    )
    assert.deepEqual(read, ['one', 'two'])
    assert.equal(constant, PER_REQUEST + PER_MESSAGE + 2 * PER_IMAGE)
    assert.equal(images, 2)
    assert.equal(featureParams?.get('vision'), 'messages[0].content[1].content[1]')
  })

  it('are the tools and the schema as they are written', () => {
    const tools = [{ name: 'f' }]
    const output_config = { format: { type: 'json_schema' } }
    const { read, tools: count, featureParams } = message({ tools, output_config, stream: true })
    assert.deepEqual(read, ['Hi', JSON.stringify(tools), JSON.stringify(output_config)])
    assert.equal(count, 1)
    assert.deepEqual(Object.fromEntries(featureParams ?? []), {
      tools: 'tools',
      stream: 'stream',
      json: 'output_config.format',
    })
    const nothing = message({ tools: [], output_config: { effort: 'low' }, stream: false, thinking: null })
    assert.deepEqual(
      [nothing.read, nothing.tools, nothing.features?.size, nothing.stream],
      [['Hi'], 0, 0, false],
    )
    assert.equal(message({ thinking: { type: 'enabled' } }).featureParams?.get('reasoning'), 'thinking')
    assert.equal(message({ thinking: { type: 'disabled' } }).features?.size, 0)
  })
})
