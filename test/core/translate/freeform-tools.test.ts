import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import fc from 'fast-check'
import { objectsIn } from '../../../lib/core/json/index.ts'
import { bodyFault } from '../../../lib/core/operations/body/body-schema.ts'
import { chatCompletions, responses } from '../../../lib/core/operations/index.ts'
import { FreeformReader, freeformText } from '../../../lib/core/translate/freeform-tools.ts'
import { type Translation, translationOf } from '../../../lib/core/translate/index.ts'
import { chatChunk, messageEvent } from '../../support/scripted-upstream.ts'
import { ANTHROPIC, ask, type Body, OPENAI, tool } from './support/requests.ts'
import { clientOn } from './support/responses.ts'
import { textPieces } from './support/streams.ts'

const context = { upstreamModel: 'm', defaultMaxTokens: 100 }
const PATCH = '*** Begin Patch\n"a"\t\\n 😀\n*** End Patch'
const GRAMMAR = 'start: "*** Begin Patch"'

/** The function that the line gets for a tool that takes a text. */
const parameters = (description?: string) => ({
  type: 'object',
  properties: { input: { type: 'string', ...(description && { description }) } },
  required: ['input'],
  additionalProperties: false,
})
const BOUND = `The text must match this lark grammar:\n${GRAMMAR}`

/** A caller of tools that take a text, and how such a tool, its call and its output look there. */
interface Caller {
  readonly from: typeof responses | typeof chatCompletions
  tool(name: string, more?: Body): Body
  grammar: Body
  choice(name: string): Body
  /** A request whose conversation holds a call and its output. */
  conversation(name: string, input: string, output: string): Body
}

const RESPONSES: Caller = {
  from: responses,
  tool: (name, more = {}) => ({ type: 'custom', name, ...more }),
  grammar: { format: { type: 'grammar', syntax: 'lark', definition: GRAMMAR } },
  choice: (name) => ({ type: 'custom', name }),
  conversation: (name, input, output) => ({
    input: [
      ...ask,
      { type: 'custom_tool_call', id: 'ctc_1', call_id: 'call_1', name, input },
      { type: 'custom_tool_call_output', call_id: 'call_1', output },
    ],
  }),
}
const CHAT: Caller = {
  from: chatCompletions,
  tool: (name, more = {}) => ({ type: 'custom', custom: { name, ...more } }),
  grammar: { format: { type: 'grammar', grammar: { syntax: 'lark', definition: GRAMMAR } } },
  choice: (name) => ({ type: 'custom', custom: { name } }),
  conversation: (name, input, output) => ({
    messages: [
      ...ask,
      { role: 'assistant', tool_calls: [{ id: 'call_1', type: 'custom', custom: { name, input } }] },
      { role: 'tool', tool_call_id: 'call_1', content: output },
    ],
  }),
}

/** A line that has functions only. */
interface FunctionLine {
  readonly line: typeof OPENAI | typeof ANTHROPIC
  fn(name: string, parameters: Body, description?: string): Body
  choice(name: string): Body
  call(name: string, args: Body): Body
  result(text: string): Body
  /** A whole answer that calls a tool. */
  answer(name: string, args: string): Body
  events(name: string, pieces: readonly string[]): string[]
}

const ON_CHAT: FunctionLine = {
  line: OPENAI,
  fn: (name, parameters, description) => ({
    type: 'function',
    function: { name, ...(description && { description }), parameters },
  }),
  choice: (name) => ({ type: 'function', function: { name } }),
  call: (name, args) => ({
    role: 'assistant',
    content: null,
    tool_calls: [{ id: 'call_1', type: 'function', function: { name, arguments: JSON.stringify(args) } }],
  }),
  result: (text) => ({ role: 'tool', tool_call_id: 'call_1', content: text }),
  answer: (name, args) => ({
    id: 'c',
    model: 'm',
    choices: [
      {
        message: { tool_calls: [{ id: 'call_1', type: 'function', function: { name, arguments: args } }] },
        finish_reason: 'tool_calls',
      },
    ],
  }),
  events: (name, pieces) => [
    chatChunk({
      role: 'assistant',
      tool_calls: [{ index: 0, id: 'call_1', function: { name, arguments: '' } }],
    }),
    ...pieces.map((piece) => chatChunk({ tool_calls: [{ index: 0, function: { arguments: piece } }] })),
    chatChunk({}, 'tool_calls'),
    'data: [DONE]\n\n',
  ],
}
const ON_MESSAGES: FunctionLine = {
  line: ANTHROPIC,
  fn: (name, input_schema, description) => ({ name, ...(description && { description }), input_schema }),
  choice: (name) => ({ type: 'tool', name }),
  call: (name, input) => ({ role: 'assistant', content: [{ type: 'tool_use', id: 'call_1', name, input }] }),
  result: (text) => ({
    role: 'user',
    content: [{ type: 'tool_result', tool_use_id: 'call_1', content: text }],
  }),
  answer: (name, args) => ({
    id: 'c',
    model: 'm',
    content: [{ type: 'tool_use', id: 'call_1', name, input: JSON.parse(args) }],
    stop_reason: 'tool_use',
  }),
  events: (name, pieces) => [
    messageEvent('message_start', { message: { id: 'c', model: 'm', usage: { input_tokens: 1 } } }),
    messageEvent('content_block_start', {
      index: 0,
      content_block: { type: 'tool_use', id: 'call_1', name, input: {} },
    }),
    ...pieces.map((partial_json) =>
      messageEvent('content_block_delta', { index: 0, delta: { type: 'input_json_delta', partial_json } }),
    ),
    messageEvent('content_block_stop', { index: 0 }),
    messageEvent('message_delta', { delta: { stop_reason: 'tool_use' }, usage: { output_tokens: 3 } }),
    messageEvent('message_stop'),
  ],
}

const PAIRS: [what: string, caller: Caller, line: FunctionLine][] = [
  ['a response on a chat line', RESPONSES, ON_CHAT],
  ['a response on an Anthropic-style line', RESPONSES, ON_MESSAGES],
  ['a chat on an Anthropic-style line', CHAT, ON_MESSAGES],
]

for (const [what, caller, on] of PAIRS) {
  const translation = translationOf(caller.from, on.line) as Translation
  const translated = (body: Body): Body => {
    const smallest = caller.from === responses ? { input: 'hi' } : { messages: ask }
    const json = { model: 'm', ...smallest, ...body }
    assert.equal(bodyFault(caller.from.schema, json), undefined, 'the endpoint takes it')
    const made = { ...translation.request(json, context) }
    assert.equal(bodyFault(translation.to.schema, { max_tokens: 5, ...made }), undefined)
    return made
  }

  describe(`a tool that takes a text, of ${what},`, () => {
    it('is a function with one text', () => {
      const { tools } = translated({ tools: [caller.tool('patch', { description: 'Edits.' })] })
      assert.deepEqual(tools, [on.fn('patch', parameters(), 'Edits.')])
    })

    it('keeps its grammar in words', () => {
      const { tools } = translated({ tools: [caller.tool('patch', caller.grammar)] })
      assert.deepEqual(tools, [on.fn('patch', parameters(BOUND))])
    })

    it('can be chosen, and be one of those that are allowed', () => {
      const tools = [caller.tool('patch'), caller.tool('other')]
      assert.deepEqual(
        translated({ tools, tool_choice: caller.choice('patch') }).tool_choice,
        on.choice('patch'),
      )
      const list = { mode: 'auto', tools: [caller.choice('patch')] }
      const allowed =
        caller === CHAT ? { type: 'allowed_tools', allowed_tools: list } : { type: 'allowed_tools', ...list }
      const made = translated({ tools, tool_choice: allowed })
      if (on === ON_MESSAGES) assert.deepEqual(made.tools, [on.fn('patch', parameters())])
      else
        assert.deepEqual(made.tool_choice, {
          type: 'allowed_tools',
          allowed_tools: { mode: 'auto', tools: [on.choice('patch')] },
        })
    })

    it('has its calls and outputs of earlier turns as those of a function', () => {
      const conversation = caller.conversation('patch', PATCH, 'Done.')
      const { messages: said } = translated({ ...conversation, tools: [caller.tool('patch')] })
      assert.deepEqual(objectsIn(said).slice(1), [on.call('patch', { input: PATCH }), on.result('Done.')])
      // The caller may have left the tool out of its next request.
      assert.deepEqual(objectsIn(translated(conversation).messages), objectsIn(said))
    })

    const request = {
      tools: [caller.tool('patch'), caller === CHAT ? tool('f') : { type: 'function', name: 'f' }],
    }
    const answered = (name: string, args: string) =>
      translation.answer(on.answer(name, args), {}, { request, created: 5, estimatedInputTokens: 9 }).body
    /** The call in an answer. */
    const callIn = (body: Body): unknown => {
      if (caller === RESPONSES) {
        const [{ id, status, ...item } = {}] = objectsIn(body.output)
        assert.deepEqual([String(id).startsWith('ctc_'), status], [true, 'completed'])
        return item
      }
      const [choice = {}] = objectsIn(body.choices)
      return objectsIn((choice.message as Body).tool_calls)[0]
    }
    const call = (input: string) =>
      caller === RESPONSES
        ? { type: 'custom_tool_call', call_id: 'call_1', name: 'patch', input }
        : { id: 'call_1', type: 'custom', custom: { name: 'patch', input } }

    it('is called by its text', () => {
      for (const input of ['', PATCH])
        assert.deepEqual(callIn(answered('patch', JSON.stringify({ input }))), call(input))
    })

    it('leaves the calls of functions as they are', () => {
      const text = JSON.stringify(answered('f', '{"input":"a"}'))
      assert.match(text, /"arguments":"\{\\"input\\":\\"a\\"\}"/)
      assert.doesNotMatch(text, /custom_tool_call|"type":"custom","custom":\{"name":"f"/)
    })

    it('is called by its text in a stream, in whatever pieces its function comes', async () => {
      const args = JSON.stringify({ input: PATCH })
      const parted = [...args].flatMap((one) => one.split(''))
      for (const pieces of [[args], parted, [args.slice(0, 5), args.slice(5, 20), args.slice(20)]]) {
        const client = clientOn(
          on === ON_CHAT ? 'openai' : 'anthropic',
          translation,
          on.events('patch', pieces),
          request,
        )
        if (caller === RESPONSES) {
          const stream = client.responses.stream({ model: 'm', input: 'hi' })
          let text = ''
          const types = new Set<string>()
          for await (const event of stream) {
            types.add(event.type)
            if (event.type === 'response.custom_tool_call_input.delta') text += event.delta
            if (event.type === 'response.custom_tool_call_input.done') assert.equal(event.input, PATCH)
          }
          assert.equal(text, PATCH)
          assert.ok(types.has('response.custom_tool_call_input.done'))
          assert.ok(![...types].some((type) => type.includes('function_call')))
          assert.deepEqual(callIn({ ...(await stream.finalResponse()) }), call(PATCH))
        } else {
          const stream = await client.chat.completions.create({ model: 'm', messages: [], stream: true })
          let text = ''
          let head: unknown
          let finish: unknown
          for await (const { choices } of stream) {
            const [choice] = choices
            finish = choice?.finish_reason ?? finish
            for (const { index, ...part } of objectsIn(choice?.delta.tool_calls)) {
              assert.equal(index, 0)
              const { input } = part.custom as { input: string }
              if (head === undefined) head = part
              text += input
            }
          }
          assert.deepEqual(head, call(''))
          assert.deepEqual([text, finish], [PATCH, 'tool_calls'])
        }
      }
    })
  })
}

describe('a tool that takes a text, in a namespace of a response,', () => {
  it('is called by both names', () => {
    const translation = translationOf(responses, OPENAI) as Translation
    const request = {
      model: 'm',
      input: 'hi',
      tools: [{ type: 'namespace', name: 'fs', tools: [RESPONSES.tool('patch')] }],
    }
    const { tools } = translation.request(request, context)
    assert.deepEqual(tools, [ON_CHAT.fn('fs__patch', parameters())])
    const answer = ON_CHAT.answer('fs__patch', '{"input":"a"}')
    const { body } = translation.answer(answer, {}, { request, created: 5, estimatedInputTokens: 9 })
    const [{ name, namespace, input, ...rest } = {}] = objectsIn(body.output)
    assert.deepEqual([name, namespace, input, 'isFreeform' in rest], ['patch', 'fs', 'a', false])
  })
})

describe('a tool that takes a text, where it has no name,', () => {
  it('is refused', () => {
    const tools = [{ type: 'custom' }]
    for (const [from, asked] of [
      [responses, { input: 'hi' }],
      [chatCompletions, { messages: ask }],
    ] as const)
      assert.throws(() => translationOf(from, ANTHROPIC)?.request({ model: 'm', ...asked, tools }, context), {
        name: 'Untranslatable',
        param: 'tools[0]',
        what: 'the tool "custom"',
      })
  })
})

describe('the text of a call', () => {
  const read = (pieces: readonly string[]): string => {
    const reader = new FreeformReader()
    return pieces.map((piece) => reader.push(piece)).join('') + reader.end()
  }
  const cut = (text: string, cuts: readonly number[]): string[] => {
    const edges = [0, ...cuts.map((at) => at % (text.length + 1)), text.length].sort((a, b) => a - b)
    return edges.slice(1).map((edge, i) => text.slice(edges[i], edge))
  }
  /** JSON with every character escaped that may be. */
  const escaped = (text: string): string =>
    `"${text.replaceAll(/[\s\S]/g, (one) => `\\u${one.charCodeAt(0).toString(16).padStart(4, '0')}`)}"`

  it('is the same from any pieces of any JSON of it', () => {
    const forms = [
      (text: string) => JSON.stringify({ input: text }),
      (text: string) => JSON.stringify({ input: text, more: [text] }),
      (text: string) => `\n { "input" : ${JSON.stringify(text)} }`,
      (text: string) => `{"input":${escaped(text)}}`,
      (text: string) => JSON.stringify({ other: 1, input: text }),
    ]
    fc.assert(
      fc.property(textPieces, fc.constantFrom(...forms), fc.array(fc.nat()), (words, form, cuts) => {
        const text = words.join('').toWellFormed()
        assert.equal(read(cut(form(text), cuts)), text)
        assert.equal(freeformText(form(text)), text)
      }),
    )
  })

  it('is sent as soon as it is known', () => {
    const reader = new FreeformReader()
    const sent = ['{"in', 'put":"a', 'b\\', 'n\\ud83d', '\\ude00', '"}', ' '].map((piece) =>
      reader.push(piece),
    )
    assert.deepEqual(sent, ['', 'a', 'b', '\n', '😀', '', ''])
  })

  const OTHERS: [args: unknown, text: string][] = [
    ['', ''],
    ['{}', ''],
    ['*** Begin Patch', '*** Begin Patch'],
    ['{"patch":"a"}', '{"patch":"a"}'],
    [`{"${'x'.repeat(100)}":1,"input":"a"}`, 'a'],
    ['{"input":"a\nb"}', 'a\nb'],
  ]
  for (const [args, text] of OTHERS)
    it(`is found in ${JSON.stringify(args).slice(0, 40)}`, () => {
      assert.equal(read([String(args)]), text)
      if (args !== '{"input":"a\nb"}') assert.equal(freeformText(args), text)
    })

  it('is not there in arguments that are none', () => {
    for (const none of [undefined, null, 7, []]) assert.equal(freeformText(none), '')
  })

  it('that was cut is what had come', () => {
    assert.equal(read(['{"input":"ab\\']), 'ab')
    assert.equal(read(['{"input":"ab']), 'ab')
  })

  it('is not buffered beyond a bound', () => {
    const reader = new FreeformReader()
    assert.throws(() => reader.push(`x${' '.repeat(1024 * 1024)}`), RangeError)
  })
})
