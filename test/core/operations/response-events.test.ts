import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { responses } from '../../../lib/core/operations/index.ts'

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
const done = (item: unknown, output_index = 0) => ({ type: 'response.output_item.done', output_index, item })
const text = (delta: unknown, output_index = 0) => ({
  type: 'response.output_text.delta',
  output_index,
  delta,
})
const over = (response: unknown, type = 'completed') => ({ type: `response.${type}`, response })

/** Reads events; answers the reader and what it said of each. */
function read(events: (Json | string)[], { json = {} as Json, name = undefined as string | undefined } = {}) {
  const reader = responses.streamReader({ json, answers: 1 })
  const readings = events.map((event) =>
    reader.read({ event: name, data: typeof event === 'string' ? event : JSON.stringify(event) }),
  )
  return { reader, readings, output: readings.map(({ output }) => output) }
}
const substanceOf = (events: Json[], json?: Json) => read(events, { json: json ?? {} }).reader.substance

describe('the items of a response', () => {
  it('are output from their first event on, or once they say something', () => {
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

  it('are a refusal wherever they decline', () => {
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
  it('are texts of events that end so', () => {
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

  it('are counted one by one where only their text differs', () => {
    const { reader } = read([text('a')])
    reader.countText(' b')
    reader.countText('\\n')
    assert.deepEqual([reader.estimatedOutput, reader.unreportedOutput], [3, 3])
    reader.read({ event: undefined, data: JSON.stringify(over({ output: [], usage: { input_tokens: 1 } })) })
    assert.deepEqual([reader.usage.inputTokens, reader.unreportedOutput], [1, 3])
  })
})

describe('the end of a response', () => {
  const reasoning = { type: 'reasoning', id: 'rs_1', summary: [] }

  it('is its last event, with what was said before', () => {
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

  it('explains that nothing was said', () => {
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

describe('the number of the event to come', () => {
  it('is one more than that of the last, or than how many there were', () => {
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
  const search = (id: string | undefined, members: Json = {}) => ({ type: 'web_search_call', id, ...members })
  const searches = (...events: Json[]) => read(events).reader.usage.webSearches

  it('are counted as they end, each once', () => {
    assert.equal(searches(added(search('a'))), undefined)
    assert.equal(searches(done(search('a')), done(search('a')), done(search('b'), 1)), 2)
    assert.equal(searches(done(search(undefined)), done(search(undefined), 1)), 2)
    assert.equal(searches(done(search('a')), over({ output: [search('a'), search('b')] })), 2)
    assert.equal(searches(done(search('a', { status: 'failed' }))), undefined)
    assert.equal(searches(done(search('a', { action: { type: 'open_page' } }))), undefined)
  })

  it('are as many as the response says, where it does', () => {
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
  it('is told with its usage, where it is not the usual one, and without usage', () => {
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
