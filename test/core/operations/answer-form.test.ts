import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { mergeDelta } from '../../../lib/core/operations/answer-form.ts'

type Members = Record<string, unknown>

/** So many objects, one in the other, around a value. */
function nested(depth: number, value: unknown): unknown {
  return depth === 0 ? value : { a: nested(depth - 1, value) }
}

describe('the deltas of a stream, merged into a whole', () => {
  const rows: [what: string, deltas: Members[], whole: Members][] = [
    ['texts are continued', [{ content: 'He' }, { content: 'llo' }], { content: 'Hello' }],
    [
      'names are not',
      [
        { id: 'a', role: 'b' },
        { id: 'c', role: 'd' },
      ],
      { id: 'a', role: 'b' },
    ],
    ['except after an empty one', [{ name: '' }, { name: 'f' }, { name: 'g' }], { name: 'f' }],
    ['a text replaces null', [{ content: null }, { content: 'a' }], { content: 'a' }],
    ['null replaces nothing', [{ content: 'a' }, { content: null }], { content: 'a' }],
    ['nothing stays', [{ content: null }, {}], { content: null }],
    ['a missing member is added', [{ content: 'a' }, { content: undefined }], { content: 'a' }],
    ['numbers are replaced', [{ n: 1 }, { n: 2 }], { n: 2 }],
    ['a text takes the place of a number', [{ n: 1 }, { n: 'a' }], { n: 'a' }],
    ['objects are merged', [{ f: { b: 'x', c: 1 } }, { f: { b: 'y' } }], { f: { b: 'xy', c: 1 } }],
    ['an object replaces a text', [{ f: 'a' }, { f: { b: 'y' } }], { f: { b: 'y' } }],
    ['lists are continued', [{ l: [1] }, { l: [2, 'a'] }], { l: [1, 2, 'a'] }],
    ['a list replaces a text', [{ l: 'a' }, { l: [2] }], { l: [2] }],
    [
      'items of a list are merged by their index',
      [
        { l: [{ index: 1, t: 'a' }] },
        {
          l: [
            { index: 0, t: 'b' },
            { index: 1, t: 'c' },
          ],
        },
      ],
      {
        l: [
          { index: 1, t: 'ac' },
          { index: 0, t: 'b' },
        ],
      },
    ],
    [
      'and other items are appended',
      [{ l: [{ t: 'a' }] }, { l: [{ t: 'b' }] }],
      { l: [{ t: 'a' }, { t: 'b' }] },
    ],
    [
      'nor by an index that is not a number',
      [{ l: [{ index: '0', t: 'a' }] }, { l: [{ index: '0', t: 'b' }] }],
      {
        l: [
          { index: '0', t: 'a' },
          { index: '0', t: 'b' },
        ],
      },
    ],
    [
      'nor items that are not objects',
      [{ l: [null, 'a'] }, { l: [null, { index: 0 }] }],
      { l: [null, 'a', null, { index: 0 }] },
    ],
  ]
  for (const [what, deltas, whole] of rows)
    it(what, () => {
      const before = structuredClone(deltas)
      const into: Members = {}
      for (const delta of deltas) mergeDelta(into, delta)
      assert.deepEqual(into, whole)
      assert.deepEqual(deltas, before, 'the deltas are as they were')
    })

  it('merges objects eight deep, and replaces what is deeper', () => {
    for (const [depth, text] of [
      [8, 'xy'],
      [9, 'y'],
    ] as const) {
      const into: Members = {}
      for (const value of ['x', 'y']) mergeDelta(into, nested(depth, { t: value }) as Members)
      assert.deepEqual(into, nested(depth, { t: text }))
    }
  })

  it('does not set a prototype, nor treat an inherited member as its own', () => {
    const into: Members = {}
    mergeDelta(into, JSON.parse('{"__proto__":{"polluted":"a"},"toString":"x","constructor":{"name":"y"}}'))
    assert.deepEqual(Object.getPrototypeOf(into), Object.prototype)
    assert.deepEqual(Object.entries(into), [
      ['toString', 'x'],
      ['constructor', { name: 'y' }],
    ])
    assert.equal(({} as Members).polluted, undefined)
  })
})
