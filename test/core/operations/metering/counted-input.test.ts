import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { OPERATIONS } from '../../../../lib/core/operations/index.ts'

describe('the input of a chat, a text or a message', () => {
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

  describe('the input counted for a chat', () => {
    it('is that of its texts, each message, and the request', () => {
      const { read, constant, messages } = said('one', [{ type: 'text', text: 'two' }], null, [])
      assert.deepEqual(read, ['one', 'two'])
      assert.equal(constant, PER_REQUEST + 4 * PER_MESSAGE)
      assert.equal(messages, 4)
    })

    it('includes members of a message besides its content, but not its role or the id of a call', () => {
      const { read } = turn({ content: 'a', name: 'Ann', reasoning_content: 'why', tool_call_id: 'call_1' })
      assert.deepEqual(read, ['Ann', 'why', 'a'])
      assert.deepEqual(turn({ function_call: { name: 'f', arguments: '{}' } }).read, [
        '{"name":"f","arguments":"{}"}',
      ])
    })

    it('includes parts: an image, a refusal, and anything else as a file', () => {
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

    it('includes names and arguments of calls, if there are any', () => {
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

    it('includes the tools, a prediction and a schema as they are written', () => {
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

    it('includes its tools by number, and functions only without tools', () => {
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

    it('requests features by name, and none for members without a meaning', () => {
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

    it('allows the larger of two output limits', () => {
      const most = (members: Json) => chat(members).maxOutputTokens
      assert.equal(most({ max_tokens: 9, max_completion_tokens: 7 }), 9)
      assert.equal(most({ max_tokens: 5, max_completion_tokens: 7 }), 7)
      assert.equal(most({ max_tokens: 5, max_completion_tokens: null }), 5)
      assert.equal(most({ max_tokens: null, max_completion_tokens: 7 }), 7)
      assert.equal(most({ max_tokens: null }), undefined)
    })
  })

  describe('the input counted for a text to be completed', () => {
    const completion = (members: Json) => factsOf('/v1/completions', { model: 'm', ...members })

    it('is that of each text, with the suffix each time', () => {
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

    it('counts given tokens exactly, of one text or of several', () => {
      const one = completion({ prompt: [1, 2, 3] })
      assert.deepEqual([one.read, one.estimatedInputTokens, one.windowTokens, one.answers], [[], 6, 6, 1])
      const several = completion({ prompt: [[1, 2, 3], [4], [5, 6]] })
      assert.deepEqual([several.estimatedInputTokens, several.windowTokens, several.answers], [9, 6, 3])
    })

    it('covers all generated texts, also those that are not returned', () => {
      assert.equal(completion({ prompt: 'a', n: 2, best_of: 5 }).answers, 5)
      assert.equal(completion({ prompt: 'a', n: 2, best_of: 1 }).answers, 2)
      assert.equal(completion({ prompt: 'a' }).answers, 1)
      const { maxOutputTokens, messages, tools, images, stream } = completion({ prompt: 'a', max_tokens: 0 })
      assert.deepEqual([maxOutputTokens, messages, tools, images, stream], [0, 0, 0, 0, false])
      assert.equal(completion({ prompt: 'a', max_tokens: null }).maxOutputTokens, undefined)
    })
  })

  describe('the input counted for a message', () => {
    const message = (members: Json) =>
      factsOf('/v1/messages', {
        model: 'm',
        max_tokens: 9,
        messages: [{ role: 'user', content: 'Hi' }],
        ...members,
      })
    const blocks = (...content: unknown[]) => message({ messages: [{ role: 'user', content }] })

    it('is that of the system prompt, texts, thinking and the input of tools', () => {
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

    it('includes results of tools with their content, but no nested results', () => {
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

    it('includes the tools and the schema as they are written', () => {
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
})

describe('the input of the other endpoints', () => {
  type Json = Record<string, unknown>

  const PER_REQUEST = 3
  const PER_MESSAGE = 4
  const PER_IMAGE = 1200
  const PER_FILE = 4000
  const PER_TEXT = 1_000_000

  /** The facts of a body, with an estimator that takes note of what it reads. */
  function factsOf(path: string, json: Json, estimate = (_text: string) => PER_TEXT) {
    const operation = OPERATIONS.find((one) => one.path === path)
    assert.ok(operation, path)
    const read: string[] = []
    const facts = operation.facts(json, Buffer.from(JSON.stringify(json)), (text) => {
      read.push(text)
      return estimate(text)
    })
    return { ...facts, read, constant: facts.estimatedInputTokens % PER_TEXT }
  }

  describe('the input counted for a request for a response', () => {
    const response = (members: Json) => factsOf('/v1/responses', { model: 'm', ...members })
    const items = (...input: Json[]) => response({ input })

    it('is that of instructions and input, each as a message', () => {
      const { read, constant, messages } = response({ instructions: 'Be brief.', input: 'Hi' })
      assert.deepEqual(read, ['Be brief.', 'Hi'])
      assert.deepEqual([constant, messages], [PER_REQUEST + 2 * PER_MESSAGE, 2])
      const listed = response({ instructions: [{ role: 'system', content: 'a' }], input: null })
      assert.deepEqual([listed.read, listed.messages], [['a'], 1])
    })

    it('includes items, of which those without a type are messages', () => {
      const { read, constant, messages } = items(
        { role: 'user', content: 'one' },
        { type: null, role: 'user', content: 'two' },
        { type: 'message', role: 'user', id: 'msg_1', status: 'completed', phase: 'x', content: 'three' },
        { type: 'function_call', call_id: 'call_1', name: 'f', arguments: '{}' },
      )
      assert.deepEqual(read, ['one', 'two', 'three', 'f', '{}'])
      assert.deepEqual([constant, messages], [PER_REQUEST + 4 * PER_MESSAGE, 3])
    })

    it('includes parts of items: texts, refusals, images, and anything else as a file', () => {
      const parts = [
        { type: 'input_text', text: 'one' },
        { type: 'refusal', refusal: 'no' },
        { type: 'input_image', text: 'not read' },
        { type: 'input_file', file_id: 'f' },
        null,
        'text',
      ]
      const { read, constant, images, featureParams } = items(
        { role: 'user', content: parts },
        { type: 'function_call_output', call_id: 'c', output: [{ type: 'input_image' }] },
        { type: 'reasoning', summary: [{ type: 'summary_text', text: 'why' }] },
        { type: 'computer_call_output', call_id: 'c', output: { type: 'computer_screenshot' } },
      )
      assert.deepEqual(read, ['one', 'no', 'why'])
      assert.equal(constant, PER_REQUEST + 4 * PER_MESSAGE + 3 * PER_IMAGE + PER_FILE)
      assert.equal(images, 3)
      assert.equal(featureParams?.get('vision'), 'input[0].content[2]')
      const screen = items({ type: 'computer_call_output', output: { type: 'computer_screenshot' } })
      assert.equal(screen.featureParams?.get('vision'), 'input[0].output')
    })

    it('includes sealed reasoning by its length, with five characters for each token', () => {
      const sealed = (encrypted_content: unknown) => {
        const { constant, read } = items({ type: 'reasoning', summary: [], encrypted_content })
        assert.deepEqual(read, [])
        return constant - PER_REQUEST - PER_MESSAGE
      }
      assert.deepEqual(['', 'a', 'abcde', 'abcdef', null, 7].map(sealed), [0, 1, 1, 2, 0, 0])
    })

    it('includes the tools, a prediction and a schema as they are written', () => {
      const tools = [{ type: 'function' }, { type: 'web_search' }]
      const prediction = { type: 'content' }
      const text = { format: { type: 'json_schema' } }
      const facts = response({ input: 'Hi', tools, prediction, text })
      assert.deepEqual(facts.read, [
        'Hi',
        JSON.stringify(tools),
        JSON.stringify(prediction),
        JSON.stringify(text),
      ])
      assert.equal(facts.tools, 2)
      assert.deepEqual(response({ input: 'Hi', text: { format: { type: 'json_object' } } }).read, ['Hi'])
      assert.equal(response({ input: 'Hi' }).tools, 0)
    })

    it('requests features by name', () => {
      const asked = (members: Json) =>
        Object.fromEntries(response({ input: 'Hi', ...members }).featureParams ?? [])
      assert.deepEqual(asked({ reasoning: { effort: 'none', summary: 'auto' } }), { reasoning: 'reasoning' })
      assert.deepEqual(asked({ reasoning: { effort: 'none', summary: null } }), {})
      assert.deepEqual(asked({ reasoning: { effort: 'low' } }), { reasoning: 'reasoning' })
      assert.deepEqual(asked({ reasoning: null, text: { format: null }, tools: null, stream: null }), {})
      assert.deepEqual(
        asked({ stream: true, tools: [{ type: 'a' }], text: { format: { type: 'json_object' } } }),
        {
          tools: 'tools',
          stream: 'stream',
          json: 'text.format',
        },
      )
    })

    it('has one answer, streamed or not, with its maximum output', () => {
      const { model, stream, answers, maxOutputTokens } = response({
        input: 'Hi',
        stream: true,
        max_output_tokens: 9,
      })
      assert.deepEqual([model, stream, answers, maxOutputTokens], ['m', true, 1, 9])
      const other = response({ input: 'Hi', max_output_tokens: null, truncation: 'disabled' })
      assert.deepEqual(
        [other.stream, other.maxOutputTokens, 'windowTokens' in other],
        [false, undefined, false],
      )
    })
  })

  describe('the input counted for texts to be embedded', () => {
    const embedding = (input: unknown, members: Json = {}) =>
      factsOf('/v1/embeddings', { model: 'm', input, ...members }, ({ length }) => length)

    it('is that of each text, of which the longest must fit', () => {
      const of = (input: unknown) => {
        const { estimatedInputTokens, windowTokens } = embedding(input)
        return [estimatedInputTokens, windowTokens]
      }
      assert.deepEqual(of('four'), [4, 4])
      assert.deepEqual(of(['four', 'one', 'sixsix']), [13, 6])
      assert.deepEqual(of([7, 8, 9]), [3, 3])
      assert.deepEqual(of([[7], [7, 8, 9], [7, 8]]), [6, 3])
    })

    it('has one answer without output', () => {
      const { model, stream, answers, messages, tools, images, maxOutputTokens, features } = embedding('a')
      assert.deepEqual([model, stream, answers, messages, tools, images], ['m', false, 1, 0, 0, 0])
      assert.deepEqual([maxOutputTokens, features?.size ?? 0], [undefined, 0])
    })
  })

  describe('the input counted for documents to be ranked', () => {
    const rerank = (query: string, documents: unknown[]) =>
      factsOf('/v1/rerank', { model: 'm', query, documents }, (text) => Number(text) || text.length)

    it('is the query with each document, of which the longest pair must fit', () => {
      const { read, estimatedInputTokens, windowTokens } = rerank('10', [
        '20',
        { text: '40', title: 'x' },
        '30',
      ])
      assert.deepEqual(read, ['10', '20', '40', '30'])
      assert.deepEqual([estimatedInputTokens, windowTokens], [30 + 50 + 40, 50])
    })

    it('includes the whole document if it has no text', () => {
      assert.deepEqual(rerank('1', [{ title: 'a', text: 7 }]).read, ['1', '{"title":"a","text":7}'])
    })

    it('is one search for each hundred documents, with long ones counted several times', () => {
      const units = (query: string, document: string, count: number) =>
        rerank(
          query,
          Array.from({ length: count }, () => document),
        ).units
      assert.deepEqual([units('1', '1', 1), units('1', '1', 100), units('1', '1', 101)], [1, 1, 2])
      assert.deepEqual([units('1', '499', 100), units('1', '500', 50), units('1', '500', 51)], [1, 1, 2])
      assert.deepEqual([units('500', '500', 50), units('500', '501', 34)], [1, 2])
    })
  })

  describe('the input counted for images to be made', () => {
    const images = (members: Json) =>
      factsOf('/v1/images/generations', { model: 'm', prompt: 'A cat', ...members })

    it('is the requested number of images, and the prompt', () => {
      const { read, estimatedInputTokens, units, answers, messages, tools, stream } = images({ n: 3 })
      assert.deepEqual([read, estimatedInputTokens, units, answers], [['A cat'], PER_TEXT, 3, 3])
      assert.deepEqual([messages, tools, images({}).images, stream], [0, 0, 0, false])
      assert.deepEqual([images({}).units, images({ n: null }).answers], [1, 1])
      assert.equal(images({}).maxOutputTokens, undefined)
    })
  })

  describe('a count of tokens', () => {
    it('is that of a message, needs no window and has no answer', () => {
      const facts = factsOf('/v1/messages/count_tokens', {
        model: 'm',
        messages: [{ role: 'user', content: 'Hi' }],
      })
      assert.deepEqual([facts.read, facts.windowTokens, facts.maxOutputTokens], [['Hi'], 0, undefined])
      assert.equal(facts.constant, PER_REQUEST + PER_MESSAGE)
    })
  })
})
