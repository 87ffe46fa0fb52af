import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { responses } from '../../../lib/core/operations/index.ts'
import { readFrame } from '../../../lib/core/protocols/index.ts'
import {
  messageItem,
  numbered,
  responseBody,
  responseEvents,
  responseIn,
} from '../../support/responses-upstream.ts'

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
const functionCall = { id: 'fc_1', type: 'function_call', call_id: 'call_1', name: 'weather', arguments: '' }

describe('the stream of a response', () => {
  it('begins with its first text: what stands around it is no output', () => {
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

  it('tells the id under which it is kept from its first event on, and none where nothing is kept', () => {
    assert.equal(responseIn(readAll(responseEvents(['a']).slice(0, 1)).reader.kept), 'resp_1')
    assert.equal(responseIn(readAll(responseEvents(['a'], { store: false })).reader.kept), undefined)
    assert.equal(responseIn(readAll(responseEvents(['a'], { id: 'r'.repeat(2000) })).reader.kept), undefined)
  })

  it('counts what was said once, with or without the events that repeat it', () => {
    const words = ['Once ', 'upon ', 'a ', 'time']
    const cut = readAll(responseEvents(words).slice(0, 4 + words.length)).reader
    assert.equal(cut.estimatedOutput, words.length)
    assert.equal(cut.unreportedOutput, words.length)
    assert.equal(readAll(responseEvents(words)).reader.estimatedOutput, words.length)
  })

  it('counts an item that comes only whole', () => {
    const item = messageItem('Hello there, all of you.')
    const { reader, readings } = readAll(numbered([created, added(item), done(item)]))
    assert.equal(readings.at(-1)?.output, true)
    assert.ok(reader.estimatedOutput >= 5)
  })

  it('takes an answer that comes only with the last event', () => {
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
    it(`begins with reasoning that can be read: ${type}`, () => {
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

  it('does not begin with reasoning that says nothing, but with one that can be handed back', () => {
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

  it('is filtered where moderation stops it before it says anything, and not behind that', () => {
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

  it('numbers the event to come behind those that went out', () => {
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

  it('takes comments, unknown events and [DONE] for what they are', () => {
    const { readings } = readAll([': ping\n\n', ...numbered([{ type: 'response.unknown', delta: 7 }])])
    assert.ok(readings.every(({ output, error, relay }) => !output && error === undefined && relay))
    assert.equal(newReader().read({ event: undefined, data: '[DONE]' }).last, true)
    assert.throws(() => newReader().read({ event: undefined, data: '7' }), SyntaxError)
    assert.throws(() => newReader().read({ event: undefined, data: '{' }), SyntaxError)
  })
})
