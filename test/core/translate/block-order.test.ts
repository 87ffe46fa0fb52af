import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { BlockSequence, newBlock } from '../../../lib/core/translate/messages-as-chat/block-sequence.ts'
import { JsonScanner } from '../../../lib/core/translate/messages-as-chat/json-scanner.ts'
import { eventsOf } from './accumulate.ts'

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
