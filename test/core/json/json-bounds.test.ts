import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import fc from 'fast-check'
import {
  jsonExcess,
  newTally,
  parsedBytes,
  parseJson,
  parseJsonObject,
} from '../../../lib/core/json/index.ts'

const excess = (text: string): string | undefined => jsonExcess(Buffer.from(text))

/** The counts of a parsed value: all values in it, and the members of its objects. */
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
    it(`${what}: exactly as many as the bound are accepted`, () => {
      if (what !== 'levels that are never closed') assert.equal(excess(within), undefined)
      assert.match(excess(beyond) ?? '', message)
    })
  }

  it('do not count brackets, commas and quotes in strings', () => {
    for (const text of ['[[[[', ',,,,', '{"a":', '\\"[', '\\\\', '漢[']) {
      assert.equal(excess(JSON.stringify({ [text.repeat(50_000)]: text.repeat(200_000) })), undefined, text)
    }
  })

  it('count the members of each object separately from its neighbours and children', () => {
    const object = `{${'"a":1,'.repeat(5_999)}"b":`
    assert.equal(excess(`[${object}1},${object}${object}[1,2]}}]`), undefined)
    assert.match(excess(`[${object}[],${'"a":1,'.repeat(4_000)}"b":1}]`) ?? '', /10000 members/)
  })

  it('count the same as a parser, over several texts, with any white space', () => {
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
      { numRuns: 100 },
    )
  })

  it('do not throw for any bytes', () => {
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

  it('are the same for a single text as for the first text of a request, at any depth and with any damage', () => {
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
      { numRuns: 100 },
    )
  })
})

/** Where texts become long: a shorter one cannot have too many members, and is judged by its brackets alone. */
const LONG = 40_000

interface Text {
  readonly text: string
  readonly levels: number
  readonly members: number
}

/** A list of brothers, of which the last ones are nested in each other. */
const text: fc.Arbitrary<Text> = fc
  .record({
    nested: fc.oneof(fc.integer({ min: 0, max: 20 }), fc.integer({ min: 120, max: 135 })),
    kinds: fc.array(fc.constantFrom('[', '{'), { minLength: 1, maxLength: 7 }),
    before: fc.array(fc.constantFrom('[]', '{}', '"[[["', '"{\\"{["', '{"[":{}}', '1', '[[1]]'), {
      maxLength: 90,
    }),
    many: fc.oneof(
      fc.constant(0),
      fc.integer({ min: 9_990, max: 10_010 }),
      fc.integer({ min: 1, max: 7_000 }),
    ),
    pad: fc.integer({ min: -3, max: 3 }),
    padding: fc.constantFrom('none', 'spaces', 'string'),
  })
  .map(({ nested, kinds, before, many, pad, padding }) => {
    let inner = many > 0 ? `{${'"":1,'.repeat(many - 1)}"":1}` : '7'
    let levels = many > 0 ? 1 : 0
    for (let i = 0; i < nested; i++, levels++)
      inner = kinds[i % kinds.length] === '[' ? `[${inner}]` : `{"k":${inner}}`
    const all = [...before, inner].join()
    const missing = Math.max(0, LONG + pad - Buffer.byteLength(`["",${all}]`))
    const filled = padding === 'string' ? '['.repeat(missing) : ''
    const gap = padding === 'spaces' ? ' '.repeat(missing) : ''
    return {
      text: `["${filled}",${gap}${all}]`,
      levels: Math.max(levels, deepest(before)) + 1,
      members: many,
    }
  })

const deepest = (values: readonly string[]): number =>
  values.some((value) => /^(\{"|\[\[)/.test(value)) ? 2 : 1

describe('a short JSON text', () => {
  it('is refused under the same conditions as a long one: more than 128 levels, or more than 10,000 members of an object', () => {
    let refused = 0
    fc.assert(
      fc.property(text, ({ text: given, levels, members }) => {
        const raw = Buffer.from(given)
        const excess = jsonExcess(raw)
        // With a tally, each text is counted through.
        assert.equal(excess, jsonExcess(raw, newTally()))
        assert.equal(excess !== undefined, levels > 128 || members > 10_000, `${levels}, ${members}`)
        assert.equal(parseJson(given) === undefined, excess !== undefined)
        if (excess !== undefined) refused++
      }),
      { numRuns: 120 },
    )
    assert.ok(refused > 10, `${refused} were refused`)
  })

  it('is parsed down to 128 levels, without a byte beside its brackets', () => {
    for (const [levels, taken] of [
      [127, true],
      [128, true],
      [129, false],
      [130, false],
    ] as const) {
      const given = '['.repeat(levels) + ']'.repeat(levels)
      for (const each of [given, ` ${given}`, given.replace('[]', '[1]')])
        assert.deepEqual(parseJson(each), taken ? JSON.parse(each) : undefined, `${levels}`)
    }
  })

  it('that is refused by the count alone is also refused by a parser', () => {
    fc.assert(
      fc.property(
        fc.array(fc.constantFrom('{', '[', '}', ']', ',', '"', ':', '1', '\\', '漢', 'a'), {
          maxLength: 400,
        }),
        fc.constantFrom('', '['.repeat(129), `{${','.repeat(10_001)}`, '{"a":'.repeat(129), ']'.repeat(300)),
        (signs, before) => {
          const given = before + signs.join('')
          const raw = Buffer.from(given)
          if (jsonExcess(raw) !== jsonExcess(raw, newTally()))
            assert.throws(() => JSON.parse(given), SyntaxError)
          if (jsonExcess(raw, newTally()) !== undefined) {
            assert.equal(parseJson(given), undefined)
            assert.equal(parseJsonObject(given), undefined)
          }
        },
      ),
      { numRuns: 100 },
    )
  })
})

const WIDE = /[^\0-\xff]/

/** Returns what the strings of a parsed text take: each takes two bytes a character if it has one that takes them. */
function stringBytes(value: unknown): number {
  if (typeof value === 'string') return WIDE.test(value) ? 2 * value.length : value.length
  if (typeof value !== 'object' || value === null) return 0
  return Object.entries(value).reduce(
    (sum, [name, member]) => sum + stringBytes(name) + stringBytes(member),
    0,
  )
}

/** Writes a text as JSON, as clients do or with an escape for each character beyond ASCII, as those in Python do. */
const written = (value: unknown, escaped: boolean): Buffer => {
  const json = JSON.stringify(value)
  const asEscape = (unit: string) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`
  return Buffer.from(escaped ? json.replace(/[^\0-\x7f]/g, asEscape) : json)
}

describe('the memory of a parsed text', () => {
  it('is at least that of its strings, with one or two bytes for each character', () => {
    const unit = fc.constantFrom('a', '"', '\\', '\n', 'é', '汉', '😀', 'base64'.repeat(400))
    const text = fc.string({ unit, maxLength: 12 })
    const value = fc.letrec((tie) => ({
      value: fc.oneof(
        { maxDepth: 3 },
        text,
        fc.integer(),
        fc.array(tie('value')),
        fc.dictionary(text, tie('value')),
      ),
    })).value
    fc.assert(
      fc.property(value, fc.boolean(), (json, escaped) => {
        const raw = written(json, escaped)
        const bytes = parsedBytes(raw, 0)
        assert.ok(bytes >= stringBytes(JSON.parse(raw.toString())))
        assert.ok(bytes <= 2 * raw.length)
      }),
    )
  })

  it('includes a base64 file once, with any words beside it', () => {
    const file = 'A'.repeat(5_000_000)
    for (const words of ['What is this?', '这是什么？', 'Qué "es" esto?\n'])
      for (const escaped of [false, true]) {
        const raw = written(
          { messages: [{ content: [{ text: words }, { url: `data:image/png;base64,${file}` }] }] },
          escaped,
        )
        assert.ok(parsedBytes(raw, 0) < file.length + 1000)
      }
  })

  it('includes an object for each value', () => {
    assert.ok(parsedBytes(Buffer.from('[1]'), 100) >= 6400)
  })
})
