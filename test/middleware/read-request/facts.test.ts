import assert from 'node:assert/strict'
import { before, describe, it } from 'node:test'
import { bodyFault } from '../../../lib/core/operations/body/body-schema.ts'
import {
  chatCompletions,
  estimateTokens,
  messages,
  type Operation,
} from '../../../lib/core/operations/index.ts'
import { factsInTurns } from '../../../lib/middleware/read-request/body-facts.ts'
import { cleaningUp } from '../../support/clean-up.ts'
import { cpuMsOf } from '../../support/cpu-time.ts'
import { chatBody, messageBody, startGateway, type TestGateway } from '../../support/gateway.ts'
import {
  chatAnswer,
  messageAnswer,
  type ScriptedUpstream,
  startUpstream,
} from '../../support/scripted-upstream.ts'

describe('the facts of a request', () => {
  const BASE64 = 'iVBORw0KGgoAAAANSUhEUg'.repeat(1000)
  const DATA_URL = `data:image/png;base64,${BASE64}`

  /** Facts of a body, with an estimator that counts words and remembers what it was given. */
  function factsOf(operation: Operation, body: object) {
    const raw = Buffer.from(JSON.stringify(body))
    const estimated: string[] = []
    const facts = operation.facts(JSON.parse(raw.toString()), raw, (text) => {
      estimated.push(text)
      return text.split(' ').filter(Boolean).length
    })
    return { ...facts, estimated: estimated.join('\n') }
  }
  const chat = (extra: object) => factsOf(chatCompletions, chatBody({ ...extra }))
  const message = (extra: object) => factsOf(messages, messageBody({ ...extra }))
  const user = (content: unknown) => ({ messages: [{ role: 'user', content }] })

  describe('the facts of a chat completion request', () => {
    it('estimate the text, 4 tokens per message and 3 per request', () => {
      const two = [
        { role: 'system', content: 'be brief' },
        { role: 'user', content: [{ type: 'text', text: 'one two three' }] },
      ]
      assert.equal(chat({ messages: two }).estimatedInputTokens, 3 + (4 + 2) + (4 + 3))
      assert.equal(chat({ messages: [{ role: 'assistant', content: null }] }).estimatedInputTokens, 7)
    })

    it('count an image by a constant, and never read its data', () => {
      const image = { type: 'image_url', image_url: { url: DATA_URL } }
      const { images, estimatedInputTokens, estimated, features } = chat(user([image, image]))
      assert.equal(images, 2)
      assert.ok(features.has('vision'))
      assert.ok(estimatedInputTokens > 1000 && estimatedInputTokens < 10_000)
      assert.equal(estimated, '')
    })

    it('count what a tool result in a part holds as if it were the message', () => {
      const image = { type: 'image_url', image_url: { url: DATA_URL } }
      const result = (...content: object[]) => ({ type: 'tool_result', tool_use_id: 'x', content })
      const given = chat(
        user([{ type: 'text', text: 'hi' }, result(image, { type: 'text', text: 'a b' }, image)]),
      )
      const plain = chat(user([image, { type: 'text', text: 'a b' }, { type: 'text', text: 'hi' }, image]))
      assert.equal(given.images, 2)
      assert.equal(given.featureParams.get('vision'), 'messages[0].content[1]')
      assert.equal(given.estimatedInputTokens, plain.estimatedInputTokens)
      assert.doesNotMatch(given.estimated, /base64/)
    })

    it('count files and audio by a constant, and never read their data', () => {
      const parts = [
        { type: 'file', file: { file_data: DATA_URL } },
        { type: 'input_audio', input_audio: { data: BASE64 } },
      ]
      const { images, estimatedInputTokens, estimated } = chat(user(parts))
      assert.equal(images, 0)
      assert.ok(estimatedInputTokens > 1000 && estimatedInputTokens < 20_000)
      assert.equal(estimated, '')
    })

    it('count tools, earlier tool calls and refusals by their text', () => {
      const call = { id: '1', type: 'function', function: { name: 'f', arguments: 'a b c' } }
      assert.equal(
        chat({ messages: [{ role: 'assistant', tool_calls: [call] }] }).estimatedInputTokens,
        7 + 4,
      )
      const refusal = [{ role: 'assistant', content: [{ type: 'refusal', refusal: 'no thanks' }] }]
      assert.equal(chat({ messages: refusal }).estimatedInputTokens, 7 + 2)
      const tools = [{ type: 'function', function: { name: 'f' } }, { type: 'function' }]
      assert.deepEqual([chat({ tools }).tools, chat({ functions: [{ name: 'f' }] }).tools], [2, 1])
      assert.deepEqual(
        [chat({ tools: [], functions: [{ name: 'f' }] }).tools, chat({ tools: [] }).tools],
        [1, 0],
      )
      assert.equal(chat({ tools }).estimated, `hi\n${JSON.stringify(tools)}`)
    })

    it('contain the most output asked for: max_completion_tokens before max_tokens', () => {
      assert.equal(chat({ max_tokens: 5 }).maxOutputTokens, 5)
      assert.equal(chat({ max_tokens: 5, max_completion_tokens: 7 }).maxOutputTokens, 7)
      assert.equal(chat({}).maxOutputTokens, undefined)
      assert.deepEqual([chat({}).answers, chat({ n: 4 }).answers], [1, 4])
    })

    it('contain the features that are asked for', () => {
      assert.deepEqual([...chat({}).features], [])
      const all = { stream: true, tools: [{ type: 'function' }], response_format: { type: 'json_schema' } }
      assert.deepEqual([...chat({ ...all, reasoning_effort: 'high' }).features].sort(), [
        'json',
        'reasoning',
        'stream',
        'tools',
      ])
    })
  })

  describe('the facts of a message request', () => {
    it('estimate system, text, thinking, tool uses and tool results', () => {
      const blocks = [
        { type: 'text', text: 'one two' },
        { type: 'thinking', thinking: 'three' },
        { type: 'tool_use', name: 'f', input: { a: 1 } },
        { type: 'tool_result', content: 'four five' },
        { type: 'tool_result', content: [{ type: 'text', text: 'six' }] },
      ]
      const { estimatedInputTokens } = message({
        ...user(blocks),
        system: [{ type: 'text', text: 'be brief' }],
      })
      assert.equal(estimatedInputTokens, 3 + 2 + 4 + 2 + 1 + 1 + 2 + 1)
    })

    it('count images and documents by a constant, in tool results too, and never read their data', () => {
      const source = { type: 'base64', media_type: 'image/png', data: BASE64 }
      const image = { type: 'image', source }
      const blocks = [image, { type: 'document', source }, { type: 'tool_result', content: [image] }]
      const { images, estimatedInputTokens, estimated } = message(user(blocks))
      assert.equal(images, 2)
      assert.ok(estimatedInputTokens > 3000 && estimatedInputTokens < 20_000)
      assert.equal(estimated, '')
    })

    it('contain the most output, and the features asked for', () => {
      assert.equal(message({}).maxOutputTokens, 100)
      const all = { stream: true, tools: [{ name: 'f' }], output_config: { format: { type: 'json_schema' } } }
      const { features } = message({ ...all, thinking: { type: 'adaptive' } })
      assert.deepEqual([...features].sort(), ['json', 'reasoning', 'stream', 'tools'])
      assert.deepEqual([...message({ thinking: { type: 'disabled' } }).features], [])
    })
  })

  describe('big requests', () => {
    let upstream: ScriptedUpstream
    let gateway: TestGateway
    const cleanUp = cleaningUp()
    before(async () => {
      upstream = await startUpstream((res, { path }) =>
        (path.endsWith('/messages') ? messageAnswer : chatAnswer)(res),
      )
      cleanUp.after(() => upstream.close())
      gateway = await startGateway({
        lines: [{ url: upstream.url }, { url: upstream.url, protocol: 'anthropic' }],
      })
      cleanUp.after(() => gateway.close())
    })

    /** Milliseconds of CPU time that reading and judging a body takes, without sending it anywhere. */
    function judge(operation: Operation, body: object): number {
      const raw = Buffer.from(JSON.stringify(body))
      return cpuMsOf(() => {
        const json = JSON.parse(raw.toString())
        assert.equal(bodyFault(operation.schema, json), undefined)
        operation.facts(json, raw, (text) => text.length)
        operation.upstreamBody(raw, json, { model: 'other' })
      })
    }

    // Measured: 5 ms and 45 ms. The bounds leave room for a slow machine and still separate milliseconds from seconds.
    it('of 2,000 messages are checked in milliseconds', () => {
      const turns = Array.from({ length: 2000 }, (_, i) => ({
        role: i % 2 ? 'assistant' : 'user',
        content: 'word '.repeat(40),
      }))
      assert.ok(judge(chatCompletions, chatBody({ messages: turns })) < 500)
      assert.ok(judge(messages, messageBody({ messages: turns })) < 500)
    })

    it('with one image of nearly 20 MB are checked in the time of one pass over it', () => {
      const url = `data:image/png;base64,${'A'.repeat(19_000_000)}`
      assert.ok(judge(chatCompletions, chatBody(user([{ type: 'image_url', image_url: { url } }]))) < 1000)
    })

    it('reach the upstream, with their facts in the call log', async () => {
      const image = {
        type: 'image_url',
        image_url: { url: `data:image/png;base64,${'A'.repeat(8_000_000)}` },
      }
      const body = chatBody({
        ...user([{ type: 'text', text: 'what is this?' }, image]),
        max_tokens: 9,
        tools: [{ type: 'f' }],
      })
      const response = await gateway.post('/v1/chat/completions', body)
      assert.equal(response.status, 200)
      assert.equal(
        upstream.requests.at(-1)?.raw.length,
        JSON.stringify(body).length + '"upstream-chat-0"'.length - '"chat"'.length,
      )
      const { request } = await gateway.entry(response.headers.get('x-request-id'))
      assert.deepEqual(
        [request?.messages, request?.tools, request?.images, request?.max_output_tokens],
        [1, 1, 1, 9],
      )
      assert.ok((request?.estimated_input_tokens ?? 0) < 3000)
    })
  })
})

const MEBI = 1024 * 1024

/** The facts of messages of these lengths, and how much was estimated in each turn. */
async function measured(lengths: readonly number[], lag = () => {}) {
  const messages = lengths.map((length) => ({ role: 'user', content: 'x'.repeat(length) }))
  const json = { model: 'chat', messages }
  const turns: number[] = []
  const estimate = (text: string): number => {
    turns[turns.length - 1] = (turns.at(-1) ?? 0) + text.length
    return text.length
  }
  const nextTurn = async () => {
    lag()
    turns.push(0)
  }
  const raw = Buffer.from(JSON.stringify(json))
  const facts = await factsInTurns(chatCompletions, { json, raw }, () => estimate, nextTurn)
  const atOnce = chatCompletions.facts(json, raw, (text) => text.length)
  return { facts, atOnce, turns }
}

for (const lengths of [
  [5],
  [0, 0, 3],
  [MEBI - 1, 1],
  [MEBI, MEBI],
  [MEBI + 1],
  [3 * MEBI + 7],
  [10, 2 * MEBI, 10, MEBI, 0],
  Array.from({ length: 300 }, (_, i) => 20 * i),
]) {
  it(`the facts of texts of ${lengths.slice(0, 5)} … are the same in turns as at once`, async () => {
    const { facts, atOnce, turns } = await measured(lengths)
    assert.deepEqual(facts, atOnce)
    const total = lengths.reduce((sum, each) => sum + each, 0)
    assert.ok(turns.length >= 1 + Math.ceil(total / MEBI), `${turns}`)
    assert.ok(turns.length <= 2 + lengths.length + Math.ceil(total / MEBI), `${turns}`)
    for (const each of turns) assert.ok(each < 2 * MEBI, `${turns}`)
    assert.equal(turns.at(-1), 0, 'the facts are read in a turn of their own')
  })
}

it('empty texts take turns, too', async () => {
  const { turns } = await measured(Array(150_000).fill(0))
  assert.ok(turns.length > 2, `${turns}`)
})

it('an error that ends the turns ends the reading', async () => {
  const left = new Error('the caller has left')
  let turns = 0
  const leave = () => {
    if (++turns === 2) throw left
  }
  await assert.rejects(measured([3 * MEBI], leave), left)
  assert.equal(turns, 2)
})

describe('the money that is held', () => {
  const TEXT = 'a text that a model reads '.repeat(1000)
  const TOKENS = estimateTokens(TEXT)

  function countedOf(operation: Operation, body: object): number {
    const raw = Buffer.from(JSON.stringify(body))
    return operation.facts(JSON.parse(raw.toString()), raw, estimateTokens).estimatedInputTokens
  }

  const assistant = (extra: object) => ({
    messages: [
      { role: 'assistant', content: 'yes', ...extra },
      { role: 'user', content: 'hi' },
    ],
  })
  const user = (block: object) => ({ messages: [{ role: 'user', content: [block] }] })
  const schema = { type: 'object', description: TEXT }

  /** Where a caller may put text, beside what is plainly the prompt. */
  const CHAT: Record<string, object> = {
    'the schema of the answer': {
      response_format: { type: 'json_schema', json_schema: { name: 'x', schema } },
    },
    'functions beside tools': {
      tools: [{ type: 'function', function: { name: 'x' } }],
      functions: [{ name: 'y', description: TEXT }],
    },
    'a predicted answer': { prediction: { type: 'content', content: TEXT } },
    'a function call of the older kind': assistant({ function_call: { name: 'x', arguments: TEXT } }),
    'the arguments of a call, as an object': assistant({
      tool_calls: [{ id: 'x', type: 'function', function: { name: 'x', arguments: { x: TEXT } } }],
    }),
    'reasoning handed back': assistant({ reasoning_content: TEXT }),
    'a name': assistant({ name: TEXT }),
    'a system prompt of Anthropic’s': { system: TEXT },
    'a tool call of Anthropic’s': user({ type: 'tool_use', id: 'x', name: 'x', input: { x: TEXT } }),
    'a tool result of Anthropic’s': user({ type: 'tool_result', tool_use_id: 'x', content: TEXT }),
  }

  const MESSAGES: Record<string, object> = {
    'the schema of the answer': { output_config: { format: { type: 'json_schema', schema } } },
    'a document in plain text': user({
      type: 'document',
      source: { type: 'text', media_type: 'text/plain', data: TEXT },
    }),
    'a document in parts': user({
      type: 'document',
      source: { type: 'content', content: [{ type: 'text', text: TEXT }] },
    }),
    'a search result': user({ type: 'search_result', title: 'x', content: [{ type: 'text', text: TEXT }] }),
  }

  describe('the input of a request, for which money is held', () => {
    for (const [what, extra] of Object.entries(CHAT))
      it(`counts ${what} (chat)`, () =>
        assert.ok(countedOf(chatCompletions, chatBody({ ...extra })) >= TOKENS))

    for (const [what, extra] of Object.entries(MESSAGES))
      it(`counts ${what} (messages)`, () =>
        assert.ok(countedOf(messages, messageBody({ ...extra })) >= TOKENS))

    it('does not count what no model reads', () => {
      const plain = countedOf(chatCompletions, chatBody())
      assert.equal(countedOf(chatCompletions, chatBody({ response_format: { type: 'json_object' } })), plain)
      assert.equal(countedOf(chatCompletions, chatBody({ metadata: { note: TEXT } })), plain)
    })

    it('survives what is nested beyond the stack', () => {
      const depth = 200_000
      const deep = `${'['.repeat(depth)}${']'.repeat(depth)}`
      const raw = Buffer.from(
        `{"model":"chat","messages":[{"role":"user","content":"hi","x":${deep}}],"stream":false}`,
      )
      const { estimatedInputTokens } = chatCompletions.facts(JSON.parse(raw.toString()), raw, estimateTokens)
      assert.ok(estimatedInputTokens > 1000)
    })
  })

  describe('the output of a request, for which money is held', () => {
    for (const [lower, higher] of [
      ['max_tokens', 'max_completion_tokens'],
      ['max_completion_tokens', 'max_tokens'],
    ] as const)
      it(`is at most the greater of both limits, whichever the upstream goes by (${higher})`, () => {
        const body = chatBody({ [lower]: 1, [higher]: 5000 })
        const facts = chatCompletions.facts(body, Buffer.from(JSON.stringify(body)), estimateTokens)
        assert.equal(facts.maxOutputTokens, 5000)
      })
  })
})
