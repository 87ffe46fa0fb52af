import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import fc from 'fast-check'
import { messages, responses } from '../../../../lib/core/operations/index.ts'
import {
  BlockSequence,
  JsonScanner,
  newBlock,
} from '../../../../lib/core/translate/messages-as-chat/stream.ts'
import { derivedId, sealedToolId } from '../../../../lib/core/translate/tool-ids.ts'
import { chatChunk } from '../../../support/scripted-upstream.ts'
import type { Body } from '../support/requests.ts'
import {
  chunk,
  eventsOf,
  inputOf,
  jsonText,
  messageOf,
  ofChunks,
  ofDeltas,
  piece,
  relayTranslated,
  type Tool,
  testRelayPaths,
  textPieces,
  toolCall,
  translator,
  wellFormed,
} from '../support/streams.ts'

describe('chunks of an OpenAI-style line', () => {
  const source = fc
    .record({
      thinking: textPieces,
      text: textPieces,
      tools: fc.array(toolCall, { maxLength: 4 }),
      order: fc.array(fc.nat(), { maxLength: 40 }),
      noise: fc.array(fc.constantFrom(': comment\n\n', 'data: {"choices":[]}\n\n'), { maxLength: 3 }),
      spaced: fc.boolean(),
      usageApart: fc.boolean(),
    })
    .filter(
      ({ thinking, text, tools }) => [...thinking, ...text].some((piece) => piece !== '') || tools.length > 0,
    )

  function streamOf({
    thinking,
    text,
    tools,
    order,
    noise,
    spaced,
    usageApart,
  }: typeof source extends fc.Arbitrary<infer T> ? T : never): string {
    const queues: object[][] = [
      wellFormed(thinking).map((piece) => ({ reasoning_content: piece, content: null })),
      wellFormed(text).map((content) => ({ content })),
      ...tools.map(({ name, json, bare }, index) => [
        { tool_calls: [{ index, id: `call_${index}`, type: 'function', function: { name, arguments: '' } }] },
        ...(bare ? [] : json.map((piece) => ({ tool_calls: [{ index, function: { arguments: piece } }] }))),
      ]),
    ]
    const deltas: object[] = [{ role: 'assistant', content: '' }]
    for (const pick of order) {
      const filled = queues.filter((queue) => queue.length > 0)
      const next = filled[pick % Math.max(1, filled.length)]?.shift()
      if (next) deltas.push(next)
    }
    deltas.push(...queues.flat())
    const usage = {
      prompt_tokens: 9,
      completion_tokens: 4,
      total_tokens: 13,
      prompt_tokens_details: { cached_tokens: 2 },
    }
    const chunk = (choices: object[], extra: object = {}) =>
      `data: ${jsonText({ id: 'chatcmpl-1', object: 'chat.completion.chunk', created: 1, model: 'm', choices, ...extra }, spaced)}\n\n`
    const finish = { index: 0, delta: {}, finish_reason: tools.length > 0 ? 'tool_calls' : 'stop' }
    return [
      ...deltas.map((delta, i) => chunk([{ index: 0, delta, finish_reason: null }]) + (noise[i] ?? '')),
      chunk([finish], usageApart ? {} : { usage }),
      ...(usageApart ? [chunk([], { usage })] : []),
      'data: [DONE]\n\n',
    ].join('')
  }

  it('make a message of the same content, one block at a time, in whatever order they come', () => {
    fc.assert(
      fc.property(source, (given) => {
        const { text, end, skipped } = relayTranslated('openai', streamOf(given))
        assert.equal(end, 'complete')
        assert.equal(skipped, 0)
        const message = messageOf(text)
        const told = (kind: string, member: string) =>
          message.content
            .filter(({ type }: { type: string }) => type === kind)
            .map((block: Record<string, unknown>) => block[member])
        assert.equal(told('text', 'text').join(''), wellFormed(given.text).join(''))
        assert.equal(told('thinking', 'thinking').join(''), wellFormed(given.thinking).join(''))
        assert.deepEqual(
          told('tool_use', 'id')
            .map((id: string) => Number(id.slice(5)))
            .sort(),
          given.tools.map((_, i) => i),
        )
        for (const { type, id, name, input: got } of message.content) {
          if (type !== 'tool_use') continue
          const tool = given.tools[Number(id.slice(5))] as Tool
          assert.equal(name, tool.name)
          assert.deepEqual(got, inputOf(tool))
        }
        assert.equal(message.stop_reason, given.tools.length > 0 ? 'tool_use' : 'end_turn')
        assert.deepEqual(message.usage, {
          input_tokens: 7,
          cache_creation_input_tokens: null,
          cache_read_input_tokens: 2,
          output_tokens: 4,
        })
      }),
      { numRuns: 120 },
    )
  })

  testRelayPaths('openai', source.map(streamOf))
})

const UNSIGNED = 'unsigned:openai-style-line'
const PING = 'event: ping\ndata: {"type":"ping"}\n\n'

describe('a stream of an OpenAI-style line', () => {
  it('has an id and a model of its own where the line gives none', () => {
    for (const head of [{}, { id: '', model: null }, { id: 7, model: { a: 1 } }]) {
      const chunks = [{ ...head, ...chunk({ ...piece({ function: { name: 'f' } }) }) }]
      const made = ofChunks(chunks, { model: 'asked' })
      assert.deepEqual([made.id, made.model, made.content[0].id], ['msg_5', 'asked', derivedId('msg_5:0')])
    }
    const made = ofChunks([
      { id: 'c', model: 'm', ...chunk(piece({ function: { name: 'f' } })) },
      { id: 'd', ...chunk(piece({ index: 1, function: { name: 'g' } })) },
    ])
    assert.deepEqual([made.id, made.model], ['c', 'm'])
    assert.deepEqual(
      made.content.map(({ id }: { id: string }) => id),
      [derivedId('c:0'), derivedId('c:1')],
    )
  })

  it('begins with the estimated input, and reports it once', () => {
    const stream = translator(messages, { model: 'asked' })
    const [begin, ...others] = eventsOf(stream.push(chunk({})) + stream.push(chunk({})))
    assert.deepEqual(others, [])
    assert.deepEqual(begin, {
      type: 'message_start',
      message: {
        id: 'msg_5',
        type: 'message',
        role: 'assistant',
        model: 'asked',
        content: [],
        stop_reason: null,
        stop_sequence: null,
        usage: {
          input_tokens: 9,
          cache_creation_input_tokens: null,
          cache_read_input_tokens: null,
          output_tokens: 0,
        },
      },
    })
  })

  it('is kept alive once it has begun', () => {
    const stream = translator()
    assert.equal(stream.push(undefined), '')
    stream.push(chunk({}))
    assert.equal(stream.push(undefined), PING)
    const response = translator(responses)
    assert.equal(response.push(undefined), '')
    response.push(chunk({}))
    assert.equal(response.push(undefined), ': ping\n\n')
  })

  it('has a beginning and an end without any chunk', () => {
    const made = ofChunks([])
    assert.deepEqual([made.id, made.content, made.stop_reason], ['msg_5', [], 'end_turn'])
    const response = translator(responses)
    const types = eventsOf(response.end({})).map(({ type }) => type)
    assert.deepEqual(types, ['response.created', 'response.in_progress', 'response.completed'])
  })

  it('counts members without a counterpart: other choices, unknown members, reasoning and pages of unknown kinds', () => {
    const other = { choices: [{ index: 1, delta: { content: 'no' }, finish_reason: 'length' }] }
    const made = ofChunks([
      chunk({ content: 'Hi', mystery: 1, none: null, empty: '' }),
      other,
      chunk('x'),
      { choices: [7, { delta: { content: '!' } }] },
      chunk({
        reasoning_details: [{ format: 'other', data: 'a' }],
        annotations: [{ url_citation: 'x' }, {}],
      }),
      chunk({ web_searches: [{}] }),
      chunk({ content: [{ type: 'mystery', text: 'no' }] }),
      chunk({}, { finish_reason: 'stop' }),
      chunk({}, { finish_reason: null }),
    ])
    assert.deepEqual(made.content, [{ type: 'text', text: 'Hi!' }])
    assert.deepEqual([made.skipped, made.stop_reason], [7, 'end_turn'])
  })

  it('may come in parts of thinking and text', () => {
    const { content, skipped } = ofDeltas(
      { content: [{ type: 'thinking', thinking: [{ text: 'H' }, { text: '' }, { text: 'm' }, 'x'] }] },
      {
        content: [
          { type: 'text', text: 'a' },
          { type: 'text', text: 7 },
          { type: 'text', text: 'b' },
        ],
      },
    )
    assert.deepEqual(content, [
      { type: 'thinking', thinking: 'Hm', signature: UNSIGNED },
      { type: 'text', text: 'ab' },
    ])
    assert.equal(skipped, 0)
  })

  it('thinks in the member that it has a text in', () => {
    const signatures = (...deltas: object[]) => ofDeltas(...deltas).content[0].signature
    assert.equal(signatures({ reasoning: 'a' }), `${UNSIGNED}:reasoning`)
    assert.equal(signatures({ reasoning_content: '', reasoning: 'a' }), `${UNSIGNED}:reasoning`)
    assert.equal(signatures({ reasoning_content: 'a', reasoning: 'a' }), UNSIGNED)
  })

  it('cites what has an address behind the text only', () => {
    const cited = (url: unknown, title?: unknown) => ({ annotations: [{ url_citation: { url, title } }] })
    const { content, skipped } = ofDeltas(
      cited('https://a.test/early'),
      { reasoning: 'a' },
      cited('https://a.test/thought'),
      { content: 'b' },
      cited(7),
      cited('https://a.test', ''),
      cited('https://b.test', 'B'),
    )
    const page = { url: 'https://a.test', title: null, encrypted_index: UNSIGNED, cited_text: '' }
    assert.deepEqual(content.at(-1), {
      type: 'text',
      text: 'b',
      citations: [
        { type: 'web_search_result_location', ...page },
        { type: 'web_search_result_location', ...page, url: 'https://b.test', title: 'B' },
      ],
    })
    assert.equal(skipped, 3)
  })

  it('reports that it declined, also in its text', () => {
    const made = ofDeltas({ content: 'Well.' }, { refusal: '' }, { refusal: ' No.' })
    assert.deepEqual(made.content, [{ type: 'text', text: 'Well. No.' }])
    assert.deepEqual(
      [made.stop_reason, made.stop_details],
      ['refusal', { type: 'refusal', category: null, explanation: ' No.' }],
    )
    const cut = ofChunks([chunk({ refusal: 'No' }), chunk({}, { finish_reason: 'length' })])
    assert.deepEqual([cut.stop_reason, 'stop_details' in cut], ['max_tokens', false])
    const plain = ofDeltas({ content: 'Well.', refusal: '' })
    assert.deepEqual([plain.stop_reason, 'stop_details' in plain], ['end_turn', false])
  })

  it('reports reasoning by the last count that it got', () => {
    const counted = (reasoning_tokens: number) => ({
      usage: { completion_tokens_details: { reasoning_tokens } },
    })
    const { usage } = ofChunks([chunk({ content: 'a' }), counted(3), { usage: null }, { usage: {} }])
    assert.deepEqual(usage.output_tokens_details, { thinking_tokens: 3 })
  })

  it('may be copied where only its text changes', () => {
    const stream = translator()
    const member = (delta: object) => {
      stream.push(chunk(delta))
      return stream.textMember
    }
    assert.equal(member({ content: 'a' }), undefined, 'the block begins')
    assert.equal(member({ content: 'b' }), 'text')
    assert.equal(member({}), undefined)
    assert.equal(member({ reasoning: 'c' }), undefined)
    assert.equal(member({ reasoning: 'd' }), 'thinking')
    assert.equal(member(piece({ id: 'x', function: { name: 'f' } })), undefined)
    assert.equal(member({ content: 'waits' }), undefined)
    assert.equal(member({ content: 'waits' }), undefined)
  })
})

describe('the pieces of tool calls in a stream', () => {
  const called = (...pieces: object[]) => {
    const { content, skipped } = ofDeltas(...pieces.map(piece))
    const calls = content.map(({ id, name, input }: Body) => [id, name, input])
    return { calls, skipped }
  }
  const fn = (args: unknown, name?: string) => ({ function: { name, arguments: args } })

  const ROWS: [what: string, pieces: object[], calls: unknown[], skipped?: number][] = [
    [
      'by their index',
      [
        { index: 0, id: 'a', ...fn('', 'f') },
        { index: 0, ...fn('{"a":1}') },
      ],
      [['a', 'f', { a: 1 }]],
    ],
    [
      'of several calls at a time',
      [
        { index: 0, id: 'a', ...fn('', 'f') },
        { index: 1, id: 'b', ...fn('', 'g') },
        { index: 1, ...fn('{"b":1}') },
        { index: 0, ...fn('{"a":1}') },
      ],
      [
        ['a', 'f', { a: 1 }],
        ['b', 'g', { b: 1 }],
      ],
    ],
    [
      'without an index',
      [{ id: 'a', ...fn('{"a"', 'f') }, fn(':1}'), { id: 'b', ...fn('{}', 'g') }, { id: 'b', ...fn('') }],
      [
        ['a', 'f', { a: 1 }],
        ['b', 'g', {}],
      ],
    ],
    [
      'of calls that all have the same index',
      [
        { index: 0, id: 'a', ...fn('{}', 'f') },
        { index: 0, id: 'b', ...fn('{"b":1}', 'g') },
      ],
      [
        ['a', 'f', {}],
        ['b', 'g', { b: 1 }],
      ],
    ],
    [
      'that repeat the id, or give another without a name',
      [
        { index: 0, id: 'a', ...fn('{"a"', 'f') },
        { index: 0, id: 'a', ...fn(':', 'f') },
        { index: 0, id: 'z', ...fn('1}') },
      ],
      [['a', 'f', { a: 1 }]],
    ],
    ['whose arguments are an object', [{ index: 0, id: 'a', ...fn({ a: 1 }, 'f') }], [['a', 'f', { a: 1 }]]],
    ['whose arguments are none', [{ index: 0, id: 'a', ...fn(7, 'f') }, { index: 0 }], [['a', 'f', {}]]],
    [
      'whose name comes late',
      [
        { index: 0, id: 'a', ...fn('{"a"') },
        { index: 0, id: 'b', ...fn(':1}', 'f') },
      ],
      [['a', 'f', { a: 1 }]],
    ],
    [
      'without a name',
      [
        { index: 0, id: 'a', ...fn('{}', '') },
        { index: 1, id: 'b', ...fn('{}', 'g') },
      ],
      [['b', 'g', {}]],
      1,
    ],
  ]
  for (const [what, pieces, calls, skipped = 0] of ROWS) {
    it(`find their call: ${what}`, () => assert.deepEqual(called(...pieces), { calls, skipped }))
  }

  it('keep what the line wants back with the call, if it comes before the name or with it', () => {
    const extra = { google: { thought_signature: 's' } }
    const late = called(
      { index: 0, id: 'a', extra_content: extra },
      { index: 0, extra_content: { b: 1 }, ...fn('{}', 'f') },
    )
    assert.deepEqual(late.calls, [[sealedToolId('a', extra), 'f', {}]])
  })

  it('have a limit before the name arrives', () => {
    const most = 64 * 1024
    const name = { index: 0, ...fn('', 'f') }
    const stream = (length: number) => [{ index: 0, id: 'a', ...fn(`{}${' '.repeat(length - 2)}`) }, name]
    assert.deepEqual(called(...stream(most)).calls, [['a', 'f', {}]])
    assert.throws(() => called(...stream(most + 1)), RangeError)
  })

  it('delay other output, which is joined into one text and one thinking block', () => {
    const { content } = ofDeltas(
      piece({ index: 0, id: 'a', ...fn('{', 'f') }),
      { content: 'b' },
      { content: 'c' },
      { reasoning: 'd' },
      { reasoning: 'e' },
      piece({ index: 0, ...fn('}') }),
    )
    assert.deepEqual(
      content.map(({ text, thinking }: Body) => text ?? thinking),
      [undefined, 'bc', 'de'],
    )
  })

  it('make the stream end with their use, and not without one that has a name', () => {
    const named = ofDeltas(piece({ id: 'a', ...fn('{}', 'f') }))
    assert.equal(named.stop_reason, 'tool_use')
    const bare = ofChunks([chunk(piece({ id: 'a' })), chunk({}, { finish_reason: 'tool_calls' })])
    assert.deepEqual([bare.stop_reason, bare.content], ['end_turn', []])
  })
})

describe('the end of arguments that come in pieces', () => {
  const WHOLE = [
    '{}',
    '[]',
    '{"a":{"b":[1,{"c":2}]}}',
    '{"a":"}"}',
    '{"a":"\\"}"}',
    '{"a":"\\\\"}',
    '{"[":"]{"}',
    ' {"a":"b"} ',
    '[[],{}]',
  ]
  for (const json of WHOLE) {
    it(`is found, and not before: ${json}`, () => {
      const scanner = new JsonScanner()
      const end = json.trimEnd().length
      const found = [...json].map((sign) => {
        scanner.push(sign)
        return scanner.complete
      })
      assert.deepEqual(
        found,
        [...json].map((_, i) => i >= end - 1),
      )
      const whole = new JsonScanner()
      whole.push(json)
      assert.equal(whole.complete, true)
    })
  }

  for (const json of ['', '"a"', '{"a":"}', '{"a":"\\"}', '{"a":[}', '[{]', '{"a":{}'])
    it(`is not found in ${json}`, () => {
      const scanner = new JsonScanner()
      scanner.push(json)
      assert.equal(scanner.complete, false)
    })
})

describe('the blocks of a message', () => {
  const call = (id: string) => newBlock('tool_use', { id })
  const opened = (events: string) =>
    events === ''
      ? []
      : eventsOf(events)
          .filter(({ type }) => type === 'content_block_start')
          .map(({ content_block: block }) => block.id ?? block.type)

  it('stand one behind the other, each with its number', () => {
    const blocks = new BlockSequence()
    const written =
      blocks.add(newBlock('thinking', { thinking: '', signature: '' }), 'Hm') +
      blocks.add(newBlock('text', { text: '' }), 'a') +
      blocks.add(newBlock('redacted_thinking', { data: 'x' }), '') +
      blocks.end()
    const delta = (index: number, of: object) => ({ type: 'content_block_delta', index, delta: of })
    const stop = (index: number) => ({ type: 'content_block_stop', index })
    const start = (index: number, content_block: object) => ({
      type: 'content_block_start',
      index,
      content_block,
    })
    assert.deepEqual(eventsOf(written), [
      start(0, { type: 'thinking', thinking: '', signature: '' }),
      delta(0, { type: 'thinking_delta', thinking: 'Hm' }),
      delta(0, { type: 'signature_delta', signature: 'unsigned:openai-style-line' }),
      stop(0),
      start(1, { type: 'text', text: '' }),
      delta(1, { type: 'text_delta', text: 'a' }),
      stop(1),
      start(2, { type: 'redacted_thinking', data: 'x' }),
      stop(2),
    ])
    assert.equal(blocks.end(), '')
  })

  it('take a citation into an open text only', () => {
    const blocks = new BlockSequence()
    assert.equal(blocks.addDelta('text', {}), undefined)
    blocks.add(newBlock('thinking', {}), 'a')
    assert.equal(blocks.addDelta('text', {}), undefined)
    blocks.add(newBlock('text', {}), 'a')
    assert.equal(typeof blocks.addDelta('text', {}), 'string')
  })

  const BLOCK = 64
  const MOST = 64 * 1024

  it('wait for the open call until they come to more than 64 KiB, each of them counted', () => {
    for (const [waiting, opens] of [
      [MOST - BLOCK, false],
      [MOST - BLOCK + 1, true],
    ] as const) {
      const blocks = new BlockSequence()
      blocks.add(call('a'), '{')
      assert.deepEqual(opened(blocks.add(call('b'), 'x'.repeat(waiting))), opens ? ['b'] : [])
    }
    const many = new BlockSequence()
    many.add(call('a'), '{')
    const waiting = Array.from({ length: MOST / BLOCK }, (_, i) => many.add(call(`b${i}`), ''))
    assert.deepEqual(waiting.flatMap(opened), [])
    assert.deepEqual(opened(many.add(call('last'), '')), ['b0'])
  })

  it('count no more once they have been written', () => {
    const blocks = new BlockSequence()
    const [a, b, c, d] = ['a', 'b', 'c', 'd'].map(call)
    assert.ok(a && b && c && d)
    blocks.add(a, '{')
    blocks.add(b, 'x'.repeat(MOST - BLOCK))
    blocks.add(a, '}')
    assert.deepEqual(opened(blocks.add(c, 'y'.repeat(MOST - BLOCK))), [])
    assert.deepEqual(opened(blocks.add(d, '')), ['c'])
  })

  it('are written once, whole, before what comes later', () => {
    const blocks = new BlockSequence()
    const [a, b] = ['a', 'b'].map(call)
    assert.ok(a && b)
    const written =
      blocks.add(a, '{') + blocks.add(b, '{"b"') + blocks.add(a, '}') + blocks.add(b, ':1}') + blocks.end()
    const json = eventsOf(written)
      .map(({ delta }) => delta?.partial_json)
      .filter((piece) => piece !== undefined)
    assert.deepEqual(json, ['{', '}', '{"b"', ':1}'])
  })

  it('take nothing once they are closed, but white space', () => {
    const blocks = new BlockSequence()
    const a = call('a')
    blocks.add(a, '{}')
    blocks.add(newBlock('text', {}), 'a')
    assert.equal(blocks.add(a, ' \n'), '')
    assert.throws(() => blocks.add(a, ' x'), RangeError)
  })
})

describe('tool calls that take turns', () => {
  const begin = (index: number) =>
    chatChunk({
      tool_calls: [{ index, id: `call_${index}`, type: 'function', function: { name: 'f', arguments: '' } }],
    })
  const piece = (index: number, args: string) =>
    chatChunk({ tool_calls: [{ index, function: { arguments: args } }] })
  const END = [chatChunk({}, 'tool_calls'), 'data: [DONE]\n\n']

  /** Beyond what may wait for an open tool call to end. */
  const LONG = 'x'.repeat(70_000)

  describe('output that comes while a tool call is open', () => {
    it('waits no longer than until the call is whole', () => {
      const events = [
        begin(0),
        begin(1),
        piece(1, '{"a":'),
        piece(0, '{"b":'),
        piece(1, '1}'),
        piece(0, '2}'),
      ]
      const { flowed, text } = relayTranslated('openai', [...events, ...END].join(''))
      assert.match(flowed, /call_1[\s\S]*\{\\"a\\":1\}/)
      assert.deepEqual(
        messageOf(text).content.map(({ input }: { input: unknown }) => input),
        [{ b: 2 }, { a: 1 }],
      )
    })

    it('waits until the end for a call without arguments', () => {
      const events = [begin(0), begin(1), piece(1, '{"a":1}'), chatChunk({ content: 'Done.' })]
      const { flowed, text } = relayTranslated('openai', [...events, ...END].join(''))
      assert.doesNotMatch(flowed, /call_1/)
      assert.deepEqual(
        messageOf(text).content.map(({ type }: { type: string }) => type),
        ['tool_use', 'tool_use', 'text'],
      )
    })

    it('goes out where it is too much to wait: the open call is taken for ended', () => {
      const events = [begin(0), begin(1), piece(1, '{"a":"'), piece(1, LONG), piece(1, '"}')]
      const { flowed, text } = relayTranslated('openai', [...events, ...END].join(''))
      assert.match(flowed, /xxx/)
      const [first, second] = messageOf(text).content
      assert.deepEqual(first.input, {})
      assert.equal(second.input.a, LONG)
    })

    it('breaks the stream where the call that was taken for ended goes on', () => {
      const events = [begin(0), begin(1), piece(1, '{"a":"'), piece(1, LONG), piece(0, '{}')]
      const { end, detail } = relayTranslated('openai', [...events, ...END].join(''))
      assert.equal(end, 'failed')
      assert.match(detail ?? '', /continued after the next one/)
    })
  })

  describe('a tool call without a name', () => {
    it('is left out and counted', () => {
      const events = [
        chatChunk({ content: 'Hello' }),
        chatChunk({ tool_calls: [{ index: 0, id: 'call_0', function: { arguments: '{}' } }] }),
      ]
      const { text, skipped } = relayTranslated('openai', [...events, ...END].join(''))
      assert.deepEqual(messageOf(text).content, [{ type: 'text', text: 'Hello' }])
      assert.equal(skipped, 1)
    })

    it('breaks the stream where its arguments do not end', () => {
      const { end, detail } = relayTranslated('openai', [piece(0, LONG), ...END].join(''))
      assert.equal(end, 'failed')
      assert.match(detail ?? '', /no name/)
    })

    it('begins when the name comes, with the arguments that came before', () => {
      const named = chatChunk({ tool_calls: [{ index: 0, id: 'call_0', function: { name: 'f' } }] })
      const { text } = relayTranslated('openai', [piece(0, '{"a":'), named, piece(0, '1}'), ...END].join(''))
      const [call] = messageOf(text).content
      assert.deepEqual([call.name, call.input], ['f', { a: 1 }])
    })
  })

  describe('arguments nested too deep to be written again', () => {
    const deep = `{"a":${'['.repeat(100_000)}${']'.repeat(100_000)}}`
    const start = `event: content_block_start\ndata: {"type":"content_block_start","index":0,"content_block":{"type":"tool_use","id":"a","name":"f","input":${deep}}}\n\n`
    const stop = 'event: content_block_stop\ndata: {"type":"content_block_stop","index":0}\n\n'
    const end = 'event: message_delta\ndata: {"type":"message_delta","delta":{"stop_reason":"tool_use"}}\n\n'

    for (const [where, events] of [
      ['at the end of the block', [start, stop, end]],
      ['at the end of the message', [start, end]],
    ] as const) {
      it(`break the stream ${where}`, () => {
        const { end, detail } = relayTranslated('anthropic', events.join(''))
        assert.equal(end, 'failed')
        assert.match(detail ?? '', /is not valid JSON/)
      })
    }
  })
})

describe('details of reasoning in a stream', () => {
  const FORMAT = 'anthropic-claude-v1'
  const END = [chatChunk({}, 'stop'), 'data: [DONE]\n\n']

  /** The content that a caller gets for these deltas, and how many parts were left out. */
  function told(...deltas: readonly object[]) {
    const stream = [...deltas.map((delta) => chatChunk(delta)), ...END].join('')
    const { text, end, skipped } = relayTranslated('openai', stream)
    assert.equal(end, 'complete')
    return { content: messageOf(text).content, skipped }
  }

  const detail = (members: object) => ({ reasoning_details: [{ format: FORMAT, ...members }] })
  const thinking = (text: string, signature = 'unsigned:openai-style-line') => ({
    type: 'thinking',
    thinking: text,
    signature,
  })
  const ANSWER = { content: 'Hello' }
  const SAID = { type: 'text', text: 'Hello' }

  it('that repeat its text add nothing', () => {
    const thought = { reasoning_content: 'hmm', ...detail({ type: 'reasoning.text', text: 'hmm' }) }
    assert.deepEqual(told(thought, ANSWER), { content: [thinking('hmm'), SAID], skipped: 0 })
  })

  it('with a signature sign what was thought before, also beside its text', () => {
    for (const text of [undefined, 'hmm']) {
      const signed = detail({ type: 'reasoning.text', text, signature: 'sig' })
      const { content, skipped } = told({ reasoning_content: 'hmm' }, signed, ANSWER)
      assert.deepEqual([content, skipped], [[thinking('hmm', 'sig'), SAID], 0])
    }
  })

  it('with a signature end its thinking: what is thought then is another block', () => {
    const signed = (signature: string) => detail({ type: 'reasoning.text', signature })
    const [first, second] = ['one', 'two'].map((text) => ({ reasoning_content: text }))
    const { content } = told(first!, signed('sig 1'), second!, signed('sig 2'), ANSWER)
    assert.deepEqual(content, [thinking('one', 'sig 1'), thinking('two', 'sig 2'), SAID])
  })

  it('that are encrypted are a block of their own', () => {
    const { content, skipped } = told(detail({ type: 'reasoning.encrypted', data: 'xyz' }), ANSWER)
    assert.deepEqual([content, skipped], [[{ type: 'redacted_thinking', data: 'xyz' }, SAID], 0])
  })

  const strange: [what: string, given: readonly object[]][] = [
    ['of another format', [{ reasoning_content: 'hmm' }, detail({ format: 'other', signature: 'sig' })]],
    ['with neither text, data nor signature', [{ reasoning_content: 'hmm' }, detail({ id: 'r1' })]],
    ['whose signature is none', [{ reasoning_content: 'hmm' }, detail({ signature: 7 })]],
  ]
  for (const [what, given] of strange)
    it(`${what} are left out and counted, and sign nothing`, () => {
      assert.deepEqual(told(...given, ANSWER), { content: [thinking('hmm'), SAID], skipped: 1 })
    })

  it('with a signature are left out and counted where nothing was thought, or something was said since', () => {
    const signed = detail({ type: 'reasoning.text', signature: 'sig' })
    assert.deepEqual(told(signed, ANSWER), { content: [SAID], skipped: 1 })
    const late = told({ reasoning_content: 'hmm' }, ANSWER, signed)
    assert.deepEqual(late, { content: [thinking('hmm'), SAID], skipped: 1 })
  })
})
