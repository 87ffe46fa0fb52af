import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { type JsonObject, objectsIn } from '../../../../lib/core/json/index.ts'
import { responsesAsChat, responsesAsMessages } from '../../../../lib/core/translate/directions.ts'
import { OutputItems } from '../../../../lib/core/translate/responses-as-chat/stream.ts'
import { chatChunk, messageEvent, messageEvents } from '../../../support/scripted-upstream.ts'
import { clientOn } from '../support/responses.ts'
import { eventsOf, relayTranslated } from '../support/streams.ts'

describe('the end of a response on a line that speaks chat completions', () => {
  const SIGNED = { type: 'signature_delta', signature: 'c2ln' }
  const block = (index: number, start: object, ...deltas: object[]): string[] => [
    messageEvent('content_block_start', { index, content_block: start }),
    ...deltas.map((delta) => messageEvent('content_block_delta', { index, delta })),
    messageEvent('content_block_stop', { index }),
  ]
  const call = (index: number, id: string | undefined, args: string) =>
    chatChunk({
      tool_calls: [
        {
          index,
          ...(id && { id }),
          type: 'function',
          function: { ...(id && { name: 'weather' }), arguments: args },
        },
      ],
    })

  /** The same answer from a line of each protocol: reasoning, text and two tool calls. */
  const LINES = [
    {
      line: 'openai' as const,
      passage: responsesAsChat,
      events: [
        chatChunk({ role: 'assistant', content: '' }),
        chatChunk({ reasoning_content: 'Let' }),
        chatChunk({ reasoning_content: ' me' }),
        chatChunk({ content: 'Look' }),
        chatChunk({ content: 'ing "wörld" 😀' }),
        call(0, 'call_a', ''),
        call(1, 'call_b', ''),
        call(0, undefined, '{"city":'),
        call(0, undefined, '"Rome"}'),
        chatChunk({}, 'tool_calls'),
        chatChunk({}, null, {
          choices: [],
          usage: {
            prompt_tokens: 30,
            completion_tokens: 9,
            total_tokens: 39,
            prompt_tokens_details: { cached_tokens: 20 },
            completion_tokens_details: { reasoning_tokens: 4 },
          },
        }),
        'data: [DONE]\n\n',
      ],
    },
    {
      line: 'anthropic' as const,
      passage: responsesAsMessages,
      events: [
        ...messageEvents([]).slice(0, 1),
        ...block(
          0,
          { type: 'thinking', thinking: '', signature: '' },
          { type: 'thinking_delta', thinking: 'Let me' },
          SIGNED,
        ),
        ...block(
          1,
          { type: 'text', text: '' },
          { type: 'text_delta', text: 'Look' },
          { type: 'text_delta', text: 'ing "wörld" 😀' },
        ),
        messageEvent('ping'),
        ...block(
          2,
          { type: 'tool_use', id: 'call_a', name: 'weather', input: {} },
          { type: 'input_json_delta', partial_json: '{"city":"Rome"}' },
        ),
        ...block(3, { type: 'tool_use', id: 'call_b', name: 'weather', input: {} }),
        messageEvent('message_delta', {
          delta: { stop_reason: 'tool_use' },
          usage: {
            input_tokens: 10,
            cache_read_input_tokens: 20,
            output_tokens: 9,
            output_tokens_details: { thinking_tokens: 4 },
          },
        }),
        messageEvent('message_stop'),
      ],
    },
  ]

  for (const { line, passage, events } of LINES) {
    describe(`responses.stream() on a line that speaks ${line === 'openai' ? 'chat completions' : 'messages'}`, () => {
      it('gives the whole response', async () => {
        const request = { instructions: 'Be brief.', metadata: { a: 'b' } }
        const response = await clientOn(line, passage, events, request)
          .responses.stream({ model: 'chat', input: 'hi' })
          .finalResponse()
        assert.equal(response.object, 'response')
        assert.equal(response.status, 'completed')
        assert.equal(response.instructions, 'Be brief.')
        assert.deepEqual(response.metadata, { a: 'b' })
        assert.equal((response as { store?: unknown }).store, false)
        assert.equal(response.output_text, 'Looking "wörld" 😀')
        assert.deepEqual(
          response.output.map(({ type }) => type),
          ['reasoning', 'message', 'function_call', 'function_call'],
        )
        const [reasoning, , first, second] = response.output
        assert.deepEqual(reasoning?.type === 'reasoning' && reasoning.content, [
          { type: 'reasoning_text', text: 'Let me' },
        ])
        assert.deepEqual(
          [first, second].map(
            (item) => item?.type === 'function_call' && [item.call_id, item.name, item.arguments],
          ),
          [
            ['call_a', 'weather', '{"city":"Rome"}'],
            ['call_b', 'weather', '{}'],
          ],
        )
        assert.equal(response.usage?.input_tokens, 30)
        assert.equal(response.usage?.input_tokens_details.cached_tokens, 20)
        assert.equal(response.usage?.output_tokens, 9)
        assert.equal(response.usage?.output_tokens_details.reasoning_tokens, 4)
        assert.equal(response.usage?.total_tokens, 39)
      })

      it('numbers its events, and sends text and arguments piece by piece', async () => {
        const told: string[] = []
        const running = await clientOn(line, passage, events).responses.create({
          model: 'chat',
          input: 'hi',
          stream: true,
        })
        let number = 0
        for await (const event of running) {
          assert.equal(event.sequence_number, number++)
          if (event.type === 'response.output_text.delta' || event.type === 'response.reasoning_text.delta')
            told.push(event.delta)
        }
        assert.equal(told.join(''), 'Let meLooking "wörld" 😀')
        assert.ok(told.length > 2)
      })
    })
  }

  const FINISHES = [
    ['length', 'incomplete', 'max_output_tokens'],
    ['content_filter', 'incomplete', 'content_filter'],
    ['stop', 'completed', undefined],
  ] as const

  for (const [finish, status, reason] of FINISHES) {
    it(`is ${status} for ${finish}`, async () => {
      const events = [chatChunk({ content: 'Hello' }), chatChunk({}, finish)]
      const response = await clientOn('openai', responsesAsChat, events)
        .responses.stream({ model: 'chat', input: 'hi' })
        .finalResponse()
      assert.equal(response.status, status)
      assert.equal(response.incomplete_details?.reason, reason)
      assert.equal(response.output_text, 'Hello')
    })

    it(`says so of its last item and of no other (${finish}, streamed and plain)`, async () => {
      const name = 'weather'
      const events = [
        chatChunk({ content: 'Hello' }),
        call(0, 'call_a', '{}'),
        call(1, 'call_b', '{"ci'),
        chatChunk({}, finish),
      ]
      const response = await clientOn('openai', responsesAsChat, events)
        .responses.stream({ model: 'chat', input: 'hi' })
        .finalResponse()
      const tool_calls = ['{}', '{"ci'].map((args) => ({ function: { name, arguments: args } }))
      const { body } = responsesAsChat.answer(
        { choices: [{ message: { content: 'Hello', tool_calls }, finish_reason: finish }] },
        {},
        { request: {}, created: 5, estimatedInputTokens: 9 },
      )
      for (const output of [response.output, body.output as { status?: unknown }[]])
        assert.deepEqual(
          output.map((item) => 'status' in item && item.status),
          ['completed', 'completed', status],
        )
    })
  }

  it('holds a refusal, and the pages that were cited', async () => {
    const cited = { url: 'https://a.test/', title: 'A', start_index: 0, end_index: 4 }
    const events = [
      chatChunk({ content: 'rain' }),
      chatChunk({ annotations: [{ type: 'url_citation', url_citation: cited }] }),
      chatChunk({ refusal: 'Not ' }),
      chatChunk({ refusal: 'this.' }),
      chatChunk({}, 'stop'),
    ]
    const { output } = await clientOn('openai', responsesAsChat, events)
      .responses.stream({ model: 'chat', input: 'hi' })
      .finalResponse()
    assert.deepEqual(output[0]?.type === 'message' && output[0].content, [
      {
        type: 'output_text',
        text: 'rain',
        annotations: [{ type: 'url_citation', ...cited }],
        logprobs: [],
        parsed: null,
      },
      { type: 'refusal', refusal: 'Not this.', parsed: null },
    ])
  })
})

describe('the events of a response', () => {
  type Event = Readonly<Record<string, unknown>>

  /** The events that a caller gets of these deltas, after a look at their numbers. */
  function told(request: Event, finish: string, ...deltas: object[]): Event[] {
    const stream = [...deltas.map((delta) => chatChunk(delta)), chatChunk({}, finish), 'data: [DONE]\n\n']
    const { text, end } = relayTranslated('openai', stream.join(''), { passage: responsesAsChat, request })
    assert.equal(end, 'complete')
    return eventsOf(text).map(({ sequence_number: number, ...event }, i) => {
      assert.equal(number, i)
      return event
    })
  }

  const ID = 'resp_chatcmpl-1'
  const call = (index: number, args: string, id?: string, name?: string) => ({
    tool_calls: [{ index, ...(id && { id }), function: { ...(name && { name }), arguments: args } }],
  })
  /** The encrypted content by which reasoning finds its way back to the member that it came in. */
  const sealed = (json: object) => `reasoning_details:${Buffer.from(JSON.stringify(json)).toString('base64')}`
  const added = (output_index: number, item: object) => ({
    type: 'response.output_item.added',
    output_index,
    item,
  })
  const done = (output_index: number, item: object) => ({
    type: 'response.output_item.done',
    output_index,
    item,
  })

  const cited = { type: 'url_citation', url: 'https://a.test/', title: 'A', start_index: 0, end_index: 2 }
  const { type, ...url_citation } = cited
  const events = told(
    {},
    'length',
    { role: 'assistant', content: '' },
    { reasoning: 'Hm' },
    { reasoning: '.' },
    { content: 'Hi' },
    { annotations: [{ type, url_citation }] },
    { refusal: 'No' },
    call(0, '{"a":', 'call_a', 'f'),
    call(1, '', 'call_b', 'g'),
    call(0, '1}'),
  )
  const within = (item: string) => events.filter((event) => event.item_id === item)
  const items = [
    {
      id: `rs_${ID}_0`,
      type: 'reasoning',
      status: 'completed',
      summary: [],
      content: [{ type: 'reasoning_text', text: 'Hm.' }],
      encrypted_content: sealed({ details: [], member: 'reasoning' }),
    },
    {
      id: `msg_${ID}_1`,
      type: 'message',
      status: 'completed',
      role: 'assistant',
      content: [
        { type: 'output_text', text: 'Hi', annotations: [cited], logprobs: [] },
        { type: 'refusal', refusal: 'No' },
      ],
    },
    {
      id: `fc_${ID}_0`,
      type: 'function_call',
      status: 'completed',
      call_id: 'call_a',
      name: 'f',
      arguments: '{"a":1}',
    },
    {
      id: `fc_${ID}_1`,
      type: 'function_call',
      // It may have been cut off.
      status: 'incomplete',
      call_id: 'call_b',
      name: 'g',
      arguments: '{}',
    },
  ] as const

  it('begin with the response twice, without output, and end with it, whole', () => {
    const [created, running] = events
    const last = events.at(-1) ?? {}
    const shell = created?.response as Event
    assert.deepEqual([shell.id, shell.status, shell.output, shell.usage], [ID, 'in_progress', [], null])
    assert.deepEqual(created, { type: 'response.created', response: shell })
    assert.deepEqual(running, { type: 'response.in_progress', response: shell })
    assert.deepEqual(last, {
      type: 'response.incomplete',
      response: {
        ...shell,
        status: 'incomplete',
        incomplete_details: { reason: 'max_output_tokens' },
        output: items,
        usage: (last.response as Event).usage,
      },
    })
  })

  it('add and end each item in its place', () => {
    const [reasoning, message, first, second] = items
    const { encrypted_content: _, ...bare } = reasoning
    const begun = { status: 'in_progress', arguments: '' }
    assert.deepEqual(
      events.filter((event) => 'item' in event),
      [
        added(0, { ...bare, status: 'in_progress', content: [] }),
        done(0, reasoning),
        added(1, { ...message, status: 'in_progress', content: [] }),
        done(1, message),
        added(2, { ...first, ...begun }),
        added(3, { ...second, ...begun }),
        done(2, first),
        done(3, second),
      ],
    )
  })

  it('contain reasoning piece by piece, then whole', () => {
    const [{ id, content }] = items
    const place = { item_id: id, output_index: 0, content_index: 0 }
    assert.deepEqual(within(id), [
      { type: 'response.content_part.added', ...place, part: { type: 'reasoning_text', text: '' } },
      { type: 'response.reasoning_text.delta', ...place, delta: 'Hm' },
      { type: 'response.reasoning_text.delta', ...place, delta: '.' },
      { type: 'response.reasoning_text.done', ...place, text: 'Hm.' },
      { type: 'response.content_part.done', ...place, part: content[0] },
    ])
  })

  it('contain a text with its citations, and a refusal behind it', () => {
    const [, { id, content }] = items
    const [text, refusal] = content
    const [first, second] = [0, 1].map((index) => ({ item_id: id, output_index: 1, content_index: index }))
    assert.deepEqual(within(id), [
      { type: 'response.content_part.added', ...first, part: { ...text, text: '', annotations: [] } },
      { type: 'response.output_text.delta', ...first, delta: 'Hi', logprobs: [] },
      { type: 'response.output_text.annotation.added', ...first, annotation_index: 0, annotation: cited },
      { type: 'response.output_text.done', ...first, text: 'Hi', logprobs: [] },
      { type: 'response.content_part.done', ...first, part: text },
      { type: 'response.content_part.added', ...second, part: { type: 'refusal', refusal: '' } },
      { type: 'response.refusal.delta', ...second, delta: 'No' },
      { type: 'response.refusal.done', ...second, refusal: 'No' },
      { type: 'response.content_part.done', ...second, part: refusal },
    ])
  })

  it('contain the arguments of each call, empty ones too', () => {
    const [, , first, second] = items
    const [a, b] = [first, second].map(({ id }, i) => ({ item_id: id, output_index: i + 2 }))
    assert.deepEqual(within(first.id), [
      { type: 'response.function_call_arguments.delta', ...a, delta: '{"a":' },
      { type: 'response.function_call_arguments.delta', ...a, delta: '1}' },
      { type: 'response.function_call_arguments.done', ...a, name: 'f', arguments: '{"a":1}' },
    ])
    assert.deepEqual(within(second.id), [
      { type: 'response.function_call_arguments.delta', ...b, delta: '{}' },
      { type: 'response.function_call_arguments.done', ...b, name: 'g', arguments: '{}' },
    ])
  })

  it('contain a summary in events of its own, and seal what goes back', () => {
    const request = { reasoning: { summary: 'auto' }, include: ['reasoning.encrypted_content'] }
    const summarized = told(request, 'stop', { reasoning_content: 'Hm' }, { reasoning_content: '.' })
    const id = `rs_${ID}_0`
    const place = { item_id: id, output_index: 0, summary_index: 0 }
    const part = { type: 'summary_text', text: 'Hm.' }
    const item = { id, type: 'reasoning', status: 'completed', summary: [part] }
    const seal = sealed({ details: [], member: 'reasoning_content', text: 'Hm.' })
    assert.deepEqual(summarized.slice(2, -1), [
      added(0, { ...item, status: 'in_progress', summary: [], content: [] }),
      { type: 'response.reasoning_summary_part.added', ...place, part: { ...part, text: '' } },
      { type: 'response.reasoning_summary_text.delta', ...place, delta: 'Hm' },
      { type: 'response.reasoning_summary_text.delta', ...place, delta: '.' },
      { type: 'response.reasoning_summary_text.done', ...place, text: 'Hm.' },
      { type: 'response.reasoning_summary_part.done', ...place, part },
      done(0, { ...item, encrypted_content: seal }),
    ])
    assert.equal(summarized.at(-1)?.type, 'response.completed')
  })

  it('open a new item, where another kind of it stood between', () => {
    const kinds = told({}, 'stop', { content: 'a' }, { reasoning_content: 'b' }, { content: 'c' })
      .filter(({ type }) => type === 'response.output_item.added')
      .map(({ item }) => (item as Event).id)
    assert.deepEqual(kinds, [`msg_${ID}_0`, `rs_${ID}_1`, `msg_${ID}_2`])
  })
})

describe('the places that a streamed response cites', () => {
  const page = { url: 'https://rain.example/', title: 'Rain' }
  const citation = { type: 'web_search_result_location', ...page, cited_text: 'rain', encrypted_index: 'e' }
  const text = (index: number, said: string, ...more: object[]) =>
    block(index, { type: 'text', text: '' }, { type: 'text_delta', text: said }, ...more)

  function block(index: number, content_block: object, ...deltas: object[]): string[] {
    return [
      messageEvent('content_block_start', { index, content_block }),
      ...deltas.map((delta) => messageEvent('content_block_delta', { index, delta })),
      messageEvent('content_block_stop', { index }),
    ]
  }

  /** Events between two texts, so that the texts become two items. */
  const BETWEEN: Readonly<Record<string, readonly string[]>> = {
    'a search': [
      ...block(1, { type: 'server_tool_use', id: 's', name: 'web_search', input: { query: 'rain rome' } }),
      ...block(2, {
        type: 'web_search_tool_result',
        tool_use_id: 's',
        content: [{ type: 'web_search_result', ...page }],
      }),
    ],
    thinking: block(1, { type: 'thinking', thinking: '' }, { type: 'thinking_delta', thinking: 'Rome …' }),
  }

  for (const [what, events] of Object.entries(BETWEEN)) {
    it(`are those in the text that holds the citation, behind ${what}`, async () => {
      const client = clientOn('anthropic', responsesAsMessages, [
        messageEvent('message_start', { message: { id: 'msg_1', model: 'm', usage: { input_tokens: 1 } } }),
        ...text(0, 'I look it up. '),
        ...events,
        ...text(3, 'In Rome, '),
        ...text(4, 'it rains.', { type: 'citations_delta', citation }),
        messageEvent('message_delta', { delta: { stop_reason: 'end_turn' }, usage: { output_tokens: 3 } }),
        messageEvent('message_stop'),
      ])
      const { output } = await client.responses.stream({ model: 'm', input: 'hi' }).finalResponse()
      const texts = output.flatMap((one) => (one.type === 'message' ? objectsIn(one.content) : []))
      assert.deepEqual(
        texts.map(({ text, annotations }) => [text, annotations]),
        [
          ['I look it up. ', []],
          ['In Rome, it rains.', [{ type: 'url_citation', start_index: 9, end_index: 18, ...page }]],
        ],
      )
    })
  }
})

describe('the items of a translated response', () => {
  it('are 10,000 at most, whatever their kind: each costs far more than the bytes that begin it', () => {
    const items = new OutputItems('r', { part: 'reasoning_text', isSealed: false })
    const called = { called: { name: 'f' }, isFreeform: false }
    for (let i = 0; i < 4999; i++) {
      items.text('output_text', 'a')
      items.reasoning('b', 'reasoning')
    }
    items.toolArguments(items.newToolCall('call_1', called), '{')
    items.text('output_text', 'a')
    items.text('output_text', 'a')
    const tooMany = { name: 'RangeError', message: /more than 10000 items/ }
    assert.throws(() => items.reasoning('b', 'reasoning'), tooMany)
    assert.throws(() => items.toolArguments(items.newToolCall('call_2', called), '{'), tooMany)
  })
})

describe('reasoning summaries', () => {
  const ASKED = { reasoning: { effort: 'low', summary: 'auto' } }
  const summary = [{ type: 'summary_text', text: 'Hm. Well.' }]
  const thinking = { type: 'thinking', thinking: 'Hm. Well.', signature: 'c2ln' }
  const context = { upstreamModel: 'm', defaultMaxTokens: 5000 }
  const answerContext = (request: JsonObject) => ({ request, created: 5, estimatedInputTokens: 0 })

  const chatAnswer = {
    id: 'c',
    choices: [{ message: { content: 'Hi', reasoning_content: 'Hm. Well.' }, finish_reason: 'stop' }],
  }
  const message = { id: 'msg_1', content: [thinking, { type: 'text', text: 'Hi' }], stop_reason: 'end_turn' }

  const chunk = (delta: object, finish_reason: string | null = null) =>
    `data: ${JSON.stringify({ id: 'c', choices: [{ index: 0, delta, finish_reason }] })}\n\n`
  const block = (index: number, content_block: object, ...deltas: object[]) => [
    messageEvent('content_block_start', { index, content_block }),
    ...deltas.map((delta) => messageEvent('content_block_delta', { index, delta })),
    messageEvent('content_block_stop', { index }),
  ]

  const LINES = [
    {
      name: 'a chat line',
      protocol: 'openai' as const,
      passage: responsesAsChat,
      answer: chatAnswer,
      events: [
        chunk({ reasoning_content: 'Hm. ' }),
        chunk({ reasoning_content: 'Well.' }),
        chunk({ content: 'Hi' }, 'stop'),
        'data: [DONE]\n\n',
      ],
    },
    {
      name: 'an anthropic line',
      protocol: 'anthropic' as const,
      passage: responsesAsMessages,
      answer: message,
      events: [
        messageEvent('message_start', { message: { id: 'msg_1', model: 'm', usage: { input_tokens: 1 } } }),
        ...block(
          0,
          { type: 'thinking', thinking: '' },
          { type: 'thinking_delta', thinking: 'Hm. ' },
          { type: 'thinking_delta', thinking: 'Well.' },
          { type: 'signature_delta', signature: 'c2ln' },
        ),
        ...block(1, { type: 'text', text: '' }, { type: 'text_delta', text: 'Hi' }),
        messageEvent('message_delta', { delta: { stop_reason: 'end_turn' }, usage: { output_tokens: 3 } }),
        messageEvent('message_stop'),
      ],
    },
  ]

  describe('a summary of the reasoning', () => {
    for (const { name, protocol, passage, answer, events } of LINES) {
      it(`is the reasoning of ${name}`, () => {
        const { body } = passage.answer(answer, {}, answerContext(ASKED))
        const [item = {}] = objectsIn(body.output)
        assert.deepEqual([item.type, item.summary, item.content], ['reasoning', summary, undefined])
        const [other = {}] = objectsIn(passage.answer(answer, {}, answerContext({})).body.output)
        assert.deepEqual(other.summary, [])
        assert.deepEqual(other.content, [{ type: 'reasoning_text', text: 'Hm. Well.' }])
      })

      it(`is the streamed reasoning of ${name}, in its own events`, async () => {
        const stream = clientOn(protocol, passage, events, ASKED).responses.stream({ model: 'm', input: 'x' })
        const types: string[] = []
        let text = ''
        for await (const event of stream) {
          types.push(event.type)
          if (event.type === 'response.reasoning_summary_text.delta') text += event.delta
        }
        const [item] = (await stream.finalResponse()).output
        assert.ok(item?.type === 'reasoning')
        assert.deepEqual(item.summary, summary)
        assert.equal(text, 'Hm. Well.')
        assert.deepEqual(
          types.filter((type) => type.includes('reasoning')),
          [
            'response.reasoning_summary_part.added',
            'response.reasoning_summary_text.delta',
            'response.reasoning_summary_text.delta',
            'response.reasoning_summary_text.done',
            'response.reasoning_summary_part.done',
          ],
        )
      })
    }

    it('goes back as the thinking that it is, signed', () => {
      const { body } = responsesAsMessages.answer(message, {}, answerContext(ASKED))
      const input = [
        { role: 'user', content: 'x' },
        ...objectsIn(body.output),
        { role: 'user', content: 'y' },
      ]
      const [, turn] = objectsIn(
        responsesAsMessages.request({ model: 'm', input, ...ASKED }, context).messages,
      )
      assert.deepEqual(objectsIn(turn?.content)[0], thinking)
    })
  })

  describe('reasoning that is sealed', () => {
    const SEALED = { include: ['reasoning.encrypted_content'] }

    for (const { name, protocol, passage, answer, events } of LINES) {
      for (const asked of [SEALED, { ...SEALED, ...ASKED }]) {
        it(`needs nothing beside it to go back to ${name}${'reasoning' in asked ? ', with a summary' : ''}`, async () => {
          const plain = passage.answer(answer, {}, answerContext(asked)).body
          const { responses } = clientOn(protocol, passage, events, asked)
          const streamed = await responses.stream({ model: 'm', input: 'x' }).finalResponse()
          const sentFor = (output: unknown, bare: boolean) => {
            const items = objectsIn(output).map((item) =>
              bare && item.type === 'reasoning'
                ? {
                    type: item.type,
                    id: item.id,
                    summary: [],
                    content: null,
                    encrypted_content: item.encrypted_content,
                  }
                : item,
            )
            const input = [{ role: 'user', content: 'x' }, ...items, { role: 'user', content: 'y' }]
            return passage.request({ model: 'm', input, reasoning: { effort: 'low' } }, context).messages
          }
          for (const output of [plain.output, streamed.output]) {
            assert.deepEqual(sentFor(output, true), sentFor(output, false))
            assert.match(
              JSON.stringify(sentFor(output, true)),
              /"(?:reasoning_content|thinking)":"Hm. Well."/,
            )
          }
        })
      }
    }

    it('stands alone in an answer', () => {
      const redacted = { type: 'redacted_thinking', data: 'c2VjcmV0' }
      const answer = { id: 'msg_1', content: [redacted], stop_reason: 'max_tokens' }
      const { body } = responsesAsMessages.answer(answer, {}, answerContext(ASKED))
      const [item = {}, ...others] = objectsIn(body.output)
      assert.deepEqual([item.type, item.summary, others], ['reasoning', [], []])
      assert.equal(typeof item.encrypted_content, 'string')
    })

    it('stands alone in an input, whichever process sealed it', () => {
      const sealed = { type: 'reasoning', id: 'rs_1', summary: [], encrypted_content: 'gAAAA' }
      for (const item of [sealed, { ...sealed, id: undefined }, { ...sealed, content: null }]) {
        const input = [{ role: 'user', content: 'x' }, item, { role: 'user', content: 'y' }]
        for (const { passage } of LINES) assert.ok(passage.request({ model: 'm', input }, context).messages)
      }
    })
  })
})
