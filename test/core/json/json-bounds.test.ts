import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import fc from 'fast-check'
import { jsonExcess, newTally } from '../../../lib/core/json/index.ts'

const excess = (text: string): string | undefined => jsonExcess(Buffer.from(text))

/** What a text comes to, by parsing it. */
function countOf(value: unknown): { values: number; members: number } {
  const count = { values: 1, members: 0 }
  if (typeof value !== 'object' || value === null) return count
  const inside = Object.values(value)
  if (!Array.isArray(value)) count.members += inside.length
  for (const item of inside) {
    const { values, members } = countOf(item)
    count.values += values
    count.members += members
  }
  return count
}

const spaces = fc.array(fc.constantFrom('', '', ' ', '\t', '\n', '\r', ' \r\n\t'), {
  minLength: 1,
  maxLength: 9,
})

/** Writes spaces between the words, strings and signs of a JSON text, one kind after the other. */
function spaced(text: string, between: readonly string[]): string {
  const parts = text.match(/"(?:[^"\\]|\\.)*"|[^[\]{},:"]+|./g) ?? []
  return parts.map((part, i) => part + between[i % between.length]).join('')
}

describe('the bounds of JSON', () => {
  for (const [what, within, beyond, message] of [
    ['values', `[${'1,'.repeat(499_998)}1]`, `[${'1,'.repeat(499_999)}1]`, /500000 values/],
    ['empty lists', `[${'[],'.repeat(499_998)}[]]`, `[${'[],'.repeat(499_999)}[]]`, /500000 values/],
    ['members', `{${'"":1,'.repeat(9_999)}"":1}`, `{${'"":1,'.repeat(10_000)}"":1}`, /10000 members/],
    [
      'members in all',
      `[${'{"a":1},'.repeat(99_999)}{"a":1}]`,
      `[${'{"a":1},'.repeat(100_000)}{"a":1}]`,
      /100000 members/,
    ],
    ['lists in lists', '['.repeat(128) + ']'.repeat(128), '['.repeat(129) + ']'.repeat(129), /128 levels/],
    [
      'objects in objects',
      `${'{"a":'.repeat(128)}1${'}'.repeat(128)}`,
      `${'{"a":'.repeat(129)}1${'}'.repeat(129)}`,
      /128 levels/,
    ],
    ['levels that are never closed', '['.repeat(257), '[ '.repeat(258), /128 levels/],
  ] as const) {
    it(`${what}: as many as the bound pass, one more does not`, () => {
      if (what !== 'levels that are never closed') assert.equal(excess(within), undefined)
      assert.match(excess(beyond) ?? '', message)
    })
  }

  it('brackets, commas and quotes in strings count for nothing', () => {
    for (const text of ['[[[[', ',,,,', '{"a":', '\\"[', '\\\\', '漢[']) {
      assert.equal(excess(JSON.stringify({ [text.repeat(50_000)]: text.repeat(200_000) })), undefined, text)
    }
  })

  it('the members of an object are its own, however many its neighbours and its children have', () => {
    const object = `{${'"a":1,'.repeat(5_999)}"b":`
    assert.equal(excess(`[${object}1},${object}${object}[1,2]}}]`), undefined)
    assert.match(excess(`[${object}[],${'"a":1,'.repeat(4_000)}"b":1}]`) ?? '', /10000 members/)
  })

  it('counts what a parser finds, over several texts, with any spaces', () => {
    fc.assert(
      fc.property(fc.array(fc.jsonValue({ maxDepth: 6 })), spaces, (values, between) => {
        const tally = newTally()
        const expected = { values: 0, members: 0 }
        for (const value of values) {
          const text = spaced(JSON.stringify(value), between)
          assert.equal(jsonExcess(Buffer.from(text), tally), undefined)
          const count = countOf(value)
          expected.values += count.values
          expected.members += count.members
        }
        assert.deepEqual(tally, expected)
      }),
      { numRuns: 300 },
    )
  })

  it('never throws, whatever the bytes are', () => {
    fc.assert(
      fc.property(fc.uint8Array({ minLength: 300, maxLength: 600 }), (bytes) => {
        jsonExcess(Buffer.from(bytes))
      }),
    )
    for (const text of [
      ']'.repeat(300),
      '}'.repeat(300),
      '"'.repeat(301),
      `${'['.repeat(128)}${'}'.repeat(300)}`,
    ])
      assert.equal(excess(text), undefined)
  })

  it('are the same for a text alone as for the first of a request, however deep and however broken', () => {
    const part = fc.oneof(
      fc.constantFrom('[', '{', ']', '}', '"', '\\', ',', ':', '1', ' ', '"[{"', '"a":'),
      fc
        .tuple(fc.constantFrom('[', '{"a":', ']', '"[', '[[]'), fc.integer({ min: 120, max: 135 }))
        .map(([text, times]) => text.repeat(times)),
    )
    fc.assert(
      fc.property(fc.array(part, { maxLength: 12 }), (parts) => {
        const text = parts.join('')
        assert.equal(excess(text), jsonExcess(Buffer.from(text), newTally()), text)
      }),
      { numRuns: 1000 },
    )
  })
})
