import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import fc from 'fast-check'
import { jsonExcess, newTally, parseJson, parseJsonObject } from '../../../lib/core/json/index.ts'

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
  it('is refused exactly where a long one is: for more than 128 levels, or more than 10,000 members of an object', () => {
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
      { numRuns: 400 },
    )
    assert.ok(refused > 40, `${refused} were refused`)
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

  it('that is refused by its count alone is none that a parser takes', () => {
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
      { numRuns: 300 },
    )
  })
})
