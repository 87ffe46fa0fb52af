import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { responses } from '../../../lib/core/operations/index.ts'
import { toolId } from '../../../lib/core/translate/parts/tool-ids.ts'
import { eventsOf } from './accumulate.ts'
import { chunk, ofChunks, ofDeltas, piece, translator } from './of-chunks.ts'

const UNSIGNED = 'unsigned:openai-style-line'
const PING = 'event: ping\ndata: {"type":"ping"}\n\n'

describe('a stream of an OpenAI-style line', () => {
  it('has an id and a model of its own where the line gives none', () => {
    for (const head of [{}, { id: '', model: null }, { id: 7, model: { a: 1 } }]) {
      const made = ofChunks([{ ...head, ...chunk({ ...piece({ function: { name: 'f' } }) }) }])
      assert.deepEqual([made.id, made.model, made.content[0].id], ['msg_5', '', toolId('msg_5:0')])
    }
    const made = ofChunks([
      { id: 'c', model: 'm', ...chunk(piece({ function: { name: 'f' } })) },
      { id: 'd', ...chunk(piece({ index: 1, function: { name: 'g' } })) },
    ])
    assert.deepEqual([made.id, made.model], ['c', 'm'])
    assert.deepEqual(
      made.content.map(({ id }: { id: string }) => id),
      [toolId('c:0'), toolId('c:1')],
    )
  })

  it('begins with the input as it was estimated, and says so once', () => {
    const stream = translator()
    const [begin, ...others] = eventsOf(stream.push(chunk({})) + stream.push(chunk({})))
    assert.deepEqual(others, [])
    assert.deepEqual(begin, {
      type: 'message_start',
      message: {
        id: 'msg_5',
        type: 'message',
        role: 'assistant',
        model: '',
        content: [],
        stop_reason: null,
        stop_sequence: null,
        usage: {
          input_tokens: 9,
          cache_creation_input_tokens: 0,
          cache_read_input_tokens: 0,
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

  it('counts what no message has: other choices, unknown members, reasoning and pages of no kind', () => {
    const other = { choices: [{ index: 1, delta: { content: 'no' }, finish_reason: 'length' }] }
    const made = ofChunks([
      chunk({ content: 'Hi', mystery: 1, none: null, empty: '' }),
      other,
      chunk('x'),
      { choices: [7, { delta: { content: '!' } }] },
      chunk({
        reasoning_details: [{ format: 'other', text: 'a' }],
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

  it('may come in parts, thought and said', () => {
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

  it('says that it declined, in its text too', () => {
    const made = ofDeltas({ content: 'Well.' }, { refusal: '' }, { refusal: ' No.' })
    assert.deepEqual(made.content, [{ type: 'text', text: 'Well. No.' }])
    assert.deepEqual(
      [made.stop_reason, made.stop_details],
      ['refusal', { type: 'refusal', category: null, explanation: null }],
    )
    const plain = ofDeltas({ content: 'Well.', refusal: '' })
    assert.deepEqual([plain.stop_reason, 'stop_details' in plain], ['end_turn', false])
  })

  it('tells what was thought by the last count that it got', () => {
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
