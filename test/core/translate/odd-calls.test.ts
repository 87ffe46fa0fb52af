import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { sealedToolId } from '../../../lib/core/translate/parts/tool-ids.ts'
import { chunk, ofChunks, ofDeltas, piece } from './of-chunks.ts'
import type { Body } from './requests.ts'

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
      'that repeat the id, or tell another without a name',
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

  it('are at most so many before the name comes', () => {
    const most = 64 * 1024
    const name = { index: 0, ...fn('', 'f') }
    const stream = (length: number) => [{ index: 0, id: 'a', ...fn(`{}${' '.repeat(length - 2)}`) }, name]
    assert.deepEqual(called(...stream(most)).calls, [['a', 'f', {}]])
    assert.throws(() => called(...stream(most + 1)), RangeError)
  })

  it('have what is said meanwhile wait in one text', () => {
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
