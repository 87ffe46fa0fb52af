import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { chatCompletions, responses } from '../../../lib/core/operations/index.ts'
import { type StreamTranslator, translationOf } from '../../../lib/core/translate/index.ts'
import { eventsOf } from './support/streams.ts'

const LINE = { protocol: 'anthropic' } as const
const start = (content_block: unknown, index = 0) => ({ type: 'content_block_start', index, content_block })
const delta = (of: unknown, index = 0) => ({ type: 'content_block_delta', index, delta: of })
const text = (said: string, index = 0) => delta({ type: 'text_delta', text: said }, index)
const stop = (index = 0) => ({ type: 'content_block_stop', index })

function translator(request: Record<string, unknown> = {}, from = chatCompletions): StreamTranslator {
  const made = translationOf(from, LINE)?.stream({ request, created: 5, estimatedInputTokens: 9 })
  assert.ok(made)
  return made
}

describe('text that is copied without being read', () => {
  const page = { type: 'web_search_result_location', url: 'https://a.test/', title: 'A' }
  const places = (stream: StreamTranslator, events: readonly object[]) =>
    eventsOf(events.map((event) => stream.push(event)).join(''))
      .flatMap(({ choices }) => choices[0].delta.annotations ?? [])
      .map(({ url_citation: cited }) => [cited.start_index, cited.end_index])

  it('counts for the positions of later citations, by its characters', () => {
    const stream = translator()
    stream.push(text('ab'))
    stream.copied('cd')
    stream.copied(Buffer.from('é\\n😀').toString('latin1'))
    const first = places(stream, [delta({ type: 'citations_delta', citation: page }), stop()])
    assert.deepEqual(first, [[0, 8]])
    stream.push(start({ type: 'text', text: '' }, 1))
    stream.push(text('x', 1))
    stream.copied('y')
    assert.deepEqual(places(stream, [delta({ citation: page }, 1), stop(1)]), [[8, 10]])
    assert.equal(stream.skipped, 0)
    stream.push(start({ type: 'text', text: 'z' }, 2))
    stream.copied('z')
    assert.deepEqual(places(stream, [delta({ citation: page }, 2), stop(2)]), [[10, 12]])
    stream.push(start({ type: 'text', text: '' }, 3))
    for (const event of [delta({ citation: { type: 'char_location' } }, 3), stop(3)])
      assert.equal(stream.push(event), '')
    assert.equal(stream.skipped, 1)
  })

  it('counts by its signs where a server wrote them raw, which JSON forbids', () => {
    const stream = translator()
    stream.push(text('ab'))
    stream.copied(Buffer.from('é\n').toString('latin1'))
    assert.deepEqual(places(stream, [delta({ citation: page }), stop()]), [[0, 4]])
  })

  it('counts for nothing if no block has begun', () => {
    assert.doesNotThrow(() => translator().copied('a'))
  })

  it('counts in the length of what was thought', () => {
    const stream = translator()
    stream.push(start({ type: 'thinking', thinking: '', signature: '' }))
    stream.push(delta({ type: 'thinking_delta', thinking: 'ab' }))
    stream.copied('cde')
    stream.push(delta({ type: 'signature_delta', signature: 's' }))
    const [chunk] = eventsOf(stream.push(stop()))
    assert.deepEqual(chunk.choices[0].delta.reasoning_details, [
      { type: 'reasoning.text', format: 'anthropic-claude-v1', index: 0, length: 5, signature: 's' },
    ])
  })

  it('is that of the last piece only, if nothing else was in it', () => {
    const stream = translator()
    const member = (event: object) => {
      stream.push(event)
      return stream.textMember
    }
    assert.equal(member(text('a')), undefined, 'the chunk with the role stands before it')
    assert.equal(member(text('a')), 'content')
    assert.equal(member({ type: 'ping' }), undefined)
    assert.equal(member(delta({ text: 'a', mystery: 1 })), undefined)
    stream.push(start({ type: 'thinking', thinking: '' }, 1))
    assert.equal(member(delta({ type: 'thinking_delta', thinking: 'a' }, 1)), 'reasoning_content')
    stream.push(start({ type: 'tool_use', id: 'a', name: 'f' }, 2))
    assert.equal(member(delta({ partial_json: '{' }, 2)), 'arguments')
    assert.equal(member(delta({ partial_json: '' }, 2)), undefined)
    const fenced = translator({ response_format: { type: 'json_object' } })
    fenced.push(text('{'))
    fenced.push(text('"a":1'))
    assert.equal(fenced.textMember, undefined)
  })

  it('is none in a response, whose events are numbered', () => {
    const stream = translator({}, responses)
    stream.push(text('a'))
    stream.push(text('b'))
    assert.deepEqual([stream.textMember, stream.nextEventNumber], [undefined, 6])
  })
})
