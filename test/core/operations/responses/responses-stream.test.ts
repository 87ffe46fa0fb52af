import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { responses } from '../../../../lib/core/operations/index.ts'
import { readFrame } from '../../../../lib/core/protocols/index.ts'
import {
  messageItem,
  numbered,
  responseBody,
  responseEvents,
  responseIn,
} from '../../../support/responses-upstream.ts'

describe('the stream of a response', () => {
  const newReader = () => responses.streamReader({ json: {}, answers: 1 })

  /** Reads events one by one; answers the reader and what it said of each. */
  function readAll(events: readonly string[]) {
    const reader = newReader()
    return { reader, readings: events.map((event) => reader.read(readFrame(event))) }
  }

  const created = {
    type: 'response.created',
    response: responseBody([], { status: 'in_progress', usage: null }),
  }
  const added = (item: object, index = 0) => ({
    type: 'response.output_item.added',
    output_index: index,
    item: { ...item },
  })
  const done = (item: object, index = 0) => ({
    type: 'response.output_item.done',
    output_index: index,
    item: { ...item },
  })
  const functionCall = {
    id: 'fc_1',
    type: 'function_call',
    call_id: 'call_1',
    name: 'weather',
    arguments: '',
  }

  it('begins with its first text, not with the events around it', () => {
    const { readings } = readAll(responseEvents(['Hello']))
    assert.deepEqual(
      readings.map(({ output }) => output),
      [false, false, false, false, true, false, false, true, true],
    )
  })

  it('is finished by its last event, which carries the usage', () => {
    const { reader, readings } = readAll(responseEvents(['Hel', 'lo']))
    assert.deepEqual(
      readings.map(({ finished, last }) => finished && last),
      [false, false, false, false, false, false, false, false, false, true],
    )
    assert.equal(reader.whole, true)
    assert.equal(reader.substance, 'output')
    assert.deepEqual(reader.usage, {
      inputTokens: 7,
      cachedInputTokens: 2,
      cacheWriteTokens: undefined,
      audioInputTokens: undefined,
      outputTokens: 3,
      audioOutputTokens: undefined,
      reasoningTokens: 1,
      webSearches: 0,
    })
    assert.equal(reader.unreportedOutput, 0)
  })

  it('contains the id of a stored response from its first event on, and no id if it is not stored', () => {
    assert.equal(responseIn(readAll(responseEvents(['a']).slice(0, 1)).reader.kept), 'resp_1')
    assert.equal(responseIn(readAll(responseEvents(['a'], { store: false })).reader.kept), undefined)
    assert.equal(responseIn(readAll(responseEvents(['a'], { id: 'r'.repeat(2000) })).reader.kept), undefined)
  })

  it('counts each text once, with or without the events that repeat it', () => {
    const words = ['Once ', 'upon ', 'a ', 'time']
    const cut = readAll(responseEvents(words).slice(0, 4 + words.length)).reader
    assert.equal(cut.estimatedOutput, words.length)
    assert.equal(cut.unreportedOutput, words.length)
    assert.equal(readAll(responseEvents(words)).reader.estimatedOutput, words.length)
  })

  it('counts an item that arrives only as a whole', () => {
    const item = messageItem('Hello there, all of you.')
    const { reader, readings } = readAll(numbered([created, added(item), done(item)]))
    assert.equal(readings.at(-1)?.output, true)
    assert.ok(reader.estimatedOutput >= 5)
  })

  it('accepts an answer that arrives only with the last event', () => {
    const whole = responseBody([messageItem('Hello')], { usage: null })
    const { reader, readings } = readAll(numbered([created, { type: 'response.completed', response: whole }]))
    assert.equal(readings.at(-1)?.output, true)
    assert.equal(reader.substance, 'output')
    assert.equal(reader.estimatedOutput, 1)
    assert.equal(reader.usage.outputTokens, undefined)
  })

  it('begins with the call of a tool, whose name and arguments it counts', () => {
    const delta = (text: string) => ({
      type: 'response.function_call_arguments.delta',
      output_index: 0,
      delta: text,
    })
    const { reader, readings } = readAll(
      numbered([created, added(functionCall), delta('{"city"'), delta(':"Rome"}')]),
    )
    assert.deepEqual(
      readings.map(({ output }) => output),
      [false, true, true, true],
    )
    assert.equal(reader.estimatedOutput, 3, 'the name, and each piece of the arguments')
    assert.equal(reader.substance, 'output')
  })

  for (const type of ['web_search_call', 'code_interpreter_call', 'custom_tool_call', 'mcp_call']) {
    it(`begins with a ${type}, which the upstream runs`, () => {
      assert.equal(readAll(numbered([created, added({ id: 'x', type })])).readings.at(-1)?.output, true)
    })
  }

  it('does not begin with the list of tools that a server offers', () => {
    const { reader } = readAll(numbered([created, done({ id: 'x', type: 'mcp_list_tools', tools: [{}] })]))
    assert.equal(reader.substance, 'empty')
  })

  for (const type of ['response.reasoning_text.delta', 'response.reasoning_summary_text.delta']) {
    it(`begins with readable reasoning: ${type}`, () => {
      const { reader, readings } = readAll(
        numbered([
          created,
          added({ id: 'rs_1', type: 'reasoning', summary: [] }),
          { type, output_index: 0, delta: 'Hm' },
        ]),
      )
      assert.deepEqual(
        readings.map(({ output }) => output),
        [false, false, true],
      )
      assert.equal(reader.estimatedOutput, 1)
    })
  }

  it('does not begin with empty reasoning, unless that can be sent back', () => {
    const silent = { id: 'rs_1', type: 'reasoning', summary: [] }
    assert.equal(readAll(numbered([created, added(silent), done(silent)])).reader.substance, 'empty')
    const sealed = { ...silent, encrypted_content: 'gAAAA' }
    assert.equal(readAll(numbered([created, added(silent), done(sealed)])).reader.substance, 'output')
  })

  it('is a refusal where the model declines', () => {
    const { reader } = readAll(
      numbered([created, { type: 'response.refusal.delta', output_index: 0, delta: 'I will not.' }]),
    )
    assert.equal(reader.substance, 'refusal')
  })

  it('may be cut by its length, and is whole then', () => {
    const cut = responseBody([messageItem('Hel')], {
      status: 'incomplete',
      incomplete_details: { reason: 'max_output_tokens' },
    })
    const events = [
      ...responseEvents(['Hel']).slice(0, 5),
      ...numbered([{ type: 'response.incomplete', response: cut }]),
    ]
    const { reader } = readAll(events)
    assert.equal(reader.whole, true)
    assert.equal(reader.substance, 'output')
    assert.equal(reader.usage.outputTokens, 3)
  })

  it('is filtered if moderation stops it before the first text, and not after that', () => {
    const incomplete_details = { reason: 'content_filter' }
    const nothing = responseBody([], { status: 'incomplete', incomplete_details })
    const ending = numbered([{ type: 'response.incomplete', response: nothing }])
    assert.equal(readAll(ending).reader.substance, 'filtered')
    assert.equal(readAll([...responseEvents(['Hel']).slice(0, 5), ...ending]).reader.substance, 'output')
  })

  const flat = { type: 'error', code: 'server_error', message: 'boom', param: null }
  const nested = {
    type: 'error',
    error: { type: 'insufficient_quota', code: 'insufficient_quota', message: 'no' },
  }
  const failed = {
    type: 'response.failed',
    response: responseBody([], {
      status: 'failed',
      error: { code: 'rate_limit_exceeded', message: 'slow down' },
    }),
  }
  for (const [name, event, code] of [
    ['an error event, as the reference has it', flat, 'server_error'],
    ['an error event, as the API sends it', nested, 'insufficient_quota'],
    ['a response that failed', failed, 'rate_limit_exceeded'],
  ] as const) {
    it(`ends in an error: ${name}`, () => {
      const { readings } = readAll(numbered([created, event]))
      const error = readings.at(-1)?.error as { code: string }
      assert.equal(error.code, code)
    })
  }

  it('numbers its next event after those already sent', () => {
    const events = responseEvents(['a', 'b'])
    assert.equal(readAll(events.slice(0, 6)).reader.nextEventNumber, 6)
    assert.equal(
      readAll(events).reader.nextEventNumber,
      9,
      'the last one is held back until the call is settled',
    )
    const unnumbered = events.map((event) => event.replace(/"sequence_number":\d+,/, ''))
    assert.equal(readAll(unnumbered.slice(0, 6)).reader.nextEventNumber, 6)
  })

  it('accepts comments, unknown events and [DONE]', () => {
    const { readings } = readAll([': ping\n\n', ...numbered([{ type: 'response.unknown', delta: 7 }])])
    assert.ok(readings.every(({ output, error, relay }) => !output && error === undefined && relay))
    assert.equal(newReader().read({ event: undefined, data: '[DONE]' }).last, true)
    assert.throws(() => newReader().read({ event: undefined, data: '7' }), SyntaxError)
    assert.throws(() => newReader().read({ event: undefined, data: '{' }), SyntaxError)
  })
})

describe('the events of a response', () => {
  type Json = Record<string, unknown>

  const WORDS = 'one two three four'
  const message = (text: string, id?: string) => ({
    type: 'message',
    ...(id !== undefined && { id }),
    content: [{ type: 'output_text', text }],
  })
  const refusal = { type: 'message', id: 'msg_no', content: [{ type: 'refusal', refusal: 'No.' }] }
  const added = (item: unknown, output_index = 0) => ({
    type: 'response.output_item.added',
    output_index,
    item,
  })
  const done = (item: unknown, output_index = 0) => ({
    type: 'response.output_item.done',
    output_index,
    item,
  })
  const text = (delta: unknown, output_index = 0) => ({
    type: 'response.output_text.delta',
    output_index,
    delta,
  })
  const over = (response: unknown, type = 'completed') => ({ type: `response.${type}`, response })

  /** Reads events; answers the reader and what it said of each. */
  function read(
    events: (Json | string)[],
    { json = {} as Json, name = undefined as string | undefined } = {},
  ) {
    const reader = responses.streamReader({ json, answers: 1 })
    const readings = events.map((event) =>
      reader.read({ event: name, data: typeof event === 'string' ? event : JSON.stringify(event) }),
    )
    return { reader, readings, output: readings.map(({ output }) => output) }
  }
  const substanceOf = (events: Json[], json?: Json) => read(events, { json: json ?? {} }).reader.substance

  describe('the items of a response', () => {
    it('are output from their first event on, or when they have content', () => {
      const rows: [item: unknown, begun: boolean, ended: boolean][] = [
        [message(WORDS), true, true],
        [message(''), false, false],
        [{ type: 'reasoning', summary: [] }, false, false],
        [{ type: 'reasoning', summary: [{ text: 'Hm' }] }, true, true],
        [{ type: 'reasoning', encrypted_content: 'x' }, false, true],
        [{ type: 'web_search_call' }, true, true],
        [{ type: 'mcp_list_tools' }, false, false],
        [refusal, true, true],
        [null, false, false],
        [undefined, false, false],
      ]
      for (const [item, begun, ended] of rows)
        assert.deepEqual(
          [read([added(item)]).output[0], read([done(item)]).output[0]],
          [begun, ended],
          JSON.stringify(item),
        )
    })

    it('are counted once, by their pieces or as a whole', () => {
      const counted = (...events: Json[]) => read(events).reader.estimatedOutput
      assert.equal(counted(added(message(WORDS)), done(message(WORDS))), 4)
      assert.equal(counted(added(message('')), done(message(WORDS))), 4)
      assert.equal(counted(text('one'), text(' two'), done(message(WORDS))), 2)
      assert.equal(counted(text('one'), text(' two', 1), done(message(WORDS), 1)), 2)
      assert.equal(counted(text('one'), done(message(WORDS), 1)), 5)
      assert.equal(counted(over({ output: [message(WORDS, 'a'), message(WORDS)] })), 8)
      assert.equal(counted(done(message('one', 'a')), over({ output: [message(WORDS, 'a')] })), 1)
      assert.equal(
        counted(done(message('one', 'a')), over({ output: [message('one', 'a'), message(WORDS, 'b')] })),
        5,
      )
      assert.equal(counted(done(message('one')), over({ output: [message('one')] })), 1)
    })

    it('are a refusal if any of them declines', () => {
      for (const events of [
        [added(refusal)],
        [done(refusal)],
        [over({ output: [refusal] })],
        [done(refusal), done(message(WORDS))],
        [done(message(WORDS)), added(refusal), text('a')],
        [{ type: 'response.refusal.delta', output_index: 0, delta: 'N' }, text('a')],
      ])
        assert.equal(substanceOf(events), 'refusal', JSON.stringify(events))
    })
  })

  describe('the deltas of a response', () => {
    it('are the texts of events whose names end so', () => {
      const rows: [event: Json, output: boolean][] = [
        [text('a'), true],
        [text(''), false],
        [text(7), false],
        [text(null), false],
        [{ type: 'response.function_call_arguments.delta', delta: '{' }, true],
        [{ type: 'response.output_text.done', delta: 'a' }, false],
        [{ delta: 'a' }, false],
      ]
      for (const [event, output] of rows) {
        const { reader, readings } = read([event])
        const told = [readings[0]?.output, reader.estimatedOutput, reader.substance]
        assert.deepEqual(told, output ? [true, 1, 'output'] : [false, 0, 'empty'], JSON.stringify(event))
      }
      assert.deepEqual(read([{ delta: 'a' }], { name: 'response.output_text.delta' }).output, [true])
    })

    it('are counted one by one if only their text differs', () => {
      const { reader } = read([text('a')])
      reader.countText(' b')
      reader.countText('\\n')
      assert.deepEqual([reader.estimatedOutput, reader.unreportedOutput], [3, 3])
      reader.read({
        event: undefined,
        data: JSON.stringify(over({ output: [], usage: { input_tokens: 1 } })),
      })
      assert.deepEqual([reader.usage.inputTokens, reader.unreportedOutput], [1, 3])
    })
  })

  describe('the end of a response', () => {
    const reasoning = { type: 'reasoning', id: 'rs_1', summary: [] }

    it('is its last event, after all text', () => {
      for (const type of ['completed', 'incomplete']) {
        const { reader, readings } = read([text('a'), over({ output: [] }, type)])
        const { output, finished, last } = readings[1] ?? assert.fail()
        assert.deepEqual([output, finished, last, reader.whole], [true, true, true, true], type)
      }
      const { reader, readings } = read([over(undefined)])
      assert.deepEqual([readings[0]?.output, reader.whole, reader.usage], [false, true, { webSearches: 0 }])
      assert.equal(read([text('a')]).reader.whole, false)
      for (const end of ['[DONE]', ' [DONE] ']) {
        const { last, json } = read([end]).readings[0] ?? assert.fail()
        assert.deepEqual([last, json], [true, undefined])
      }
      assert.equal(read(['']).readings[0]?.last, false)
    })

    it('explains that there is no text', () => {
      const nothing = { status: 'completed', output: [] }
      const incomplete = (reason: string) => ({ output: [], incomplete_details: { reason } })
      assert.equal(substanceOf([over(nothing)]), 'empty')
      assert.equal(substanceOf([over(nothing)], { input: [{ type: 'function_call_output' }] }), 'no_output')
      assert.equal(substanceOf([over(incomplete('max_output_tokens'), 'incomplete')]), 'no_output')
      assert.equal(substanceOf([over(incomplete('content_filter'), 'incomplete')]), 'filtered')
      assert.equal(substanceOf([over({ output: [reasoning] })]), 'no_output')
      assert.equal(substanceOf([added(reasoning), over(nothing)]), 'no_output')
      assert.equal(substanceOf([added(reasoning)]), 'empty')
      assert.equal(substanceOf([over({ output: [message('', 'a')] })]), 'empty')
      const usage = { output_tokens: 5, output_tokens_details: { reasoning_tokens: 5 } }
      assert.equal(substanceOf([over({ ...nothing, usage })]), 'no_output')
    })

    it('is an error of the response, or of the stream', () => {
      const errorOf = (event: Json, name?: string) => read([event], { name }).readings[0]?.error
      const error = { code: 'x' }
      for (const type of ['failed', 'cancelled']) {
        assert.deepEqual(errorOf(over({ error }, type)), error)
        assert.deepEqual(errorOf(over({}, type)), { message: 'the response has the status "failed"' })
        assert.ok(errorOf(over(null, type)))
      }
      assert.deepEqual(errorOf({ type: 'error', error }), error)
      assert.deepEqual(errorOf({ type: 'error', code: 'x' }), { type: 'error', code: 'x' })
      assert.deepEqual(errorOf({ error }), error)
      assert.deepEqual(errorOf({ code: 'x' }, 'error'), { code: 'x' })
      assert.equal(errorOf({ ...text('a'), error }), undefined)
      assert.equal(errorOf({ type: 'response.created', response: { error } }), undefined)
    })
  })

  describe('the number of the next event', () => {
    it('is one more than that of the last event, or the number of events', () => {
      const next = (...numbers: unknown[]) =>
        read(numbers.map((sequence_number) => ({ ...text('a'), sequence_number }))).reader.nextEventNumber
      assert.equal(next(), 0)
      assert.equal(next(0), 1)
      assert.equal(next(7), 8)
      assert.equal(next(7, undefined), 9)
      assert.equal(next(undefined, null, '9'), 3)
      assert.equal(next(7, 3), 4)
    })
  })

  describe('the searches of a response', () => {
    const search = (id: string | undefined, members: Json = {}) => ({
      type: 'web_search_call',
      id,
      ...members,
    })
    const searches = (...events: Json[]) => read(events).reader.usage.webSearches

    it('are counted as they end, each once', () => {
      assert.equal(searches(added(search('a'))), undefined)
      assert.equal(searches(done(search('a')), done(search('a')), done(search('b'), 1)), 2)
      assert.equal(searches(done(search(undefined)), done(search(undefined), 1)), 2)
      assert.equal(searches(done(search('a')), over({ output: [search('a'), search('b')] })), 2)
      assert.equal(searches(done(search('a', { status: 'failed' }))), undefined)
      assert.equal(searches(done(search('a', { action: { type: 'open_page' } }))), undefined)
    })

    it('are the number in the response, if it has one', () => {
      const told = (num_requests: unknown) => ({
        output: [search('a')],
        usage: { input_tokens: 1, output_tokens: 2 },
        tool_usage: { web_search: { num_requests } },
      })
      assert.equal(searches(over(told(5))), 5)
      assert.equal(searches(over(told('5'))), 1)
      for (const tool_usage of [null, 7, {}, { web_search: null }]) {
        assert.equal(searches(over({ ...told(5), tool_usage })), 1)
        assert.equal(responses.readAnswer({ ...told(5), tool_usage }).usage.webSearches, 1)
      }
      assert.equal(responses.readAnswer(told(5)).usage.webSearches, 5)
      assert.equal(responses.readAnswer({ ...told(0), usage: null }).usage.webSearches, 0)
    })
  })

  describe('the tier of a response', () => {
    it('is returned with its usage if it is not the default, and also without usage', () => {
      const tier = (service_tier: unknown, usage: unknown = { input_tokens: 1 }) =>
        responses.readAnswer({ output: [], service_tier, usage }).usage
      assert.equal(tier('priority').serviceTier, 'priority')
      for (const usual of ['default', 'auto', null, undefined])
        assert.equal('serviceTier' in tier(usual), false)
      assert.deepEqual(tier('priority', null), { webSearches: 0, serviceTier: 'priority' })
      assert.deepEqual(tier('default', null), { webSearches: 0, serviceTier: '' })
      assert.deepEqual(tier('auto', null), { webSearches: 0 })
      assert.equal(read([over({ service_tier: 'flex', usage: {} })]).reader.usage.serviceTier, 'flex')
    })

    it('stands beside spoken input and output', () => {
      const usage = {
        input_tokens: 9,
        input_tokens_details: { audio_tokens: 4 },
        output_tokens: 8,
        output_tokens_details: { audio_tokens: 3 },
      }
      const { audioInputTokens, audioOutputTokens } = responses.readAnswer({ output: [], usage }).usage
      assert.deepEqual([audioInputTokens, audioOutputTokens], [4, 3])
    })
  })
})
