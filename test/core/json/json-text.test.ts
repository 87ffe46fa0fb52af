// Runs in a process of its own: JSON.parse of Node 24 can take a name with an escape for one in an earlier text.

import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import fc from 'fast-check'
import { editMembers, memberText, parseJson, withoutMember } from '../../../lib/core/json/index.ts'
import { membersOf } from '../../../lib/core/json/json-text.ts'

const blank = fc.stringMatching(/^[ \t\r\n]{0,3}$/)

/** A string as JSON writes it, each character plain or escaped by chance. */
const stringText = fc
  .array(fc.tuple(fc.string({ unit: 'binary', minLength: 1, maxLength: 1 }), fc.boolean()), { maxLength: 60 })
  .map((chars) => `"${chars.map(([char, escaped]) => (escaped ? escapeAll(char) : plain(char))).join('')}"`)

function escapeAll(char: string): string {
  return [...Array(char.length).keys()]
    .map((i) => `\\u${char.charCodeAt(i).toString(16).padStart(4, '0')}`)
    .join('')
}

function plain(char: string): string {
  return JSON.stringify(char).slice(1, -1)
}

const scalarText = fc.oneof(
  stringText,
  fc.constantFrom(
    'null',
    'true',
    'false',
    '0',
    '-0',
    '1e5',
    '1.50E-7',
    '12345678901234567890',
    '"}"',
    '"\\\\"',
    '"\\\\\\""',
  ),
)

/** JSON texts with white space anywhere, and containers of every depth. */
const { value: valueText } = fc.letrec<{ value: string }>((tie) => ({
  value: fc.oneof(
    { depthSize: 'small', withCrossShrink: true },
    scalarText,
    fc
      .tuple(blank, fc.array(fc.tuple(blank, tie('value'), blank), { maxLength: 4 }))
      .map(([empty, items]) =>
        items.length === 0 ? `[${empty}]` : `[${items.map((parts) => parts.join('')).join(',')}]`,
      ),
    fc
      .tuple(
        blank,
        fc.array(fc.tuple(blank, stringText, blank, blank, tie('value'), blank), { maxLength: 4 }),
      )
      .map(([empty, members]) =>
        members.length === 0 ? `{${empty}}` : `{${members.map(memberOf).join(',')}}`,
      ),
  ),
}))

function memberOf([a, key, b, c, value, d]: readonly string[]): string {
  return `${a}${key}${b}:${c}${value}${d}`
}

const KEYS = ['model', 'provider', 'stream_options', 'messages', '__proto__', 'a"b', 'x'.repeat(60), '']
const keyText = fc
  .tuple(fc.constantFrom(...KEYS), fc.boolean())
  .map(([key, escaped]) => (escaped ? `"${[...key].map(escapeAll).join('')}"` : JSON.stringify(key)))

/** One member as `[text before the key, key, text before the value, value, text behind it]`. */
const member = fc.tuple(blank, keyText, fc.tuple(blank, blank), valueText, blank)
const object = fc.record({
  members: fc.array(member, { maxLength: 6 }),
  before: blank,
  inside: blank,
  behind: blank,
})

type ObjectParts = typeof object extends fc.Arbitrary<infer Parts> ? Parts : never

function textOf({ members, before, inside, behind }: ObjectParts): string {
  const texts = members.map(([a, key, [b, c], value, d]) => memberOf([a, key, b, c, value, d]))
  return `${before}{${texts.length === 0 ? inside : texts.join(',')}}${behind}`
}

const edits = fc.dictionary(
  fc.constantFrom(...KEYS.filter((key) => key !== '__proto__'), 'absent'),
  fc.option(valueText, { nil: null }),
  { maxKeys: 4 },
)

describe('editing members of a JSON text', () => {
  it('has the same result as editing the value', () => {
    fc.assert(
      fc.property(object, edits, (parts, changes) => {
        const text = textOf(parts)
        const expected = new Map(Object.entries(JSON.parse(text)))
        for (const [key, value] of Object.entries(changes)) {
          if (value === null) expected.delete(key)
          else expected.set(key, JSON.parse(value))
        }
        const edited = editMembers(Buffer.from(text), changes).toString()
        assert.deepEqual(new Map(Object.entries(JSON.parse(edited))), expected)
      }),
      { numRuns: 150 },
    )
  })

  it('leaves no trace of an old value, even if a member occurs twice', () => {
    fc.assert(
      fc.property(object, edits, (parts, changes) => {
        const edited = editMembers(Buffer.from(textOf(parts)), changes)
        for (const { key, valueStart, valueEnd } of membersOf(edited)) {
          const change = Object.hasOwn(changes, key) ? changes[key] : undefined
          assert.notEqual(change, null)
          if (change !== undefined) assert.equal(edited.toString('utf8', valueStart, valueEnd), change)
        }
      }),
      { numRuns: 120 },
    )
  })

  it('finds the same in a long text after any number of searches and edits', () => {
    const raw = Buffer.from(`{"pad":${JSON.stringify('x'.repeat(20_000))},"model":"a","n":1}`)
    for (const model of ['"b"', '"longer"', null]) {
      const edited = editMembers(raw, { model })
      assert.equal(memberText(edited, 'model'), model ?? undefined)
      assert.equal(memberText(edited, 'n'), '1')
      assert.equal(memberText(raw, 'model'), '"a"')
    }
  })

  it('keeps every byte of the other members, and all bytes if there is nothing to edit', () => {
    fc.assert(
      fc.property(object, edits, (parts, changes) => {
        const text = textOf(parts)
        assert.equal(editMembers(Buffer.from(text), {}).toString(), text)
        const edited = editMembers(Buffer.from(text), changes).toString()
        assert.ok(edited.startsWith(`${parts.before}{`) && edited.endsWith(`}${parts.behind}`))
        let at = 0
        for (const [, key, [b, c], value] of parts.members) {
          const change = (changes as Record<string, string | null>)[JSON.parse(key)]
          if (Object.hasOwn(changes, JSON.parse(key)) && change === null) continue
          const kept = `${key}${b}:${c}${Object.hasOwn(changes, JSON.parse(key)) ? change : value}`
          const found = edited.indexOf(kept, at)
          assert.ok(found >= 0, `${kept} is gone`)
          at = found + kept.length
        }
      }),
      { numRuns: 120 },
    )
  })

  it('finds the value that JSON.parse would return', () => {
    fc.assert(
      fc.property(object, fc.constantFrom(...KEYS), (parts, key) => {
        const text = textOf(parts)
        const found = memberText(Buffer.from(text), key)
        const json = JSON.parse(text)
        assert.equal(found !== undefined, Object.hasOwn(json, key))
        if (found !== undefined) assert.deepEqual(JSON.parse(found), json[key])
      }),
      { numRuns: 120 },
    )
  })

  it('skips long strings that end in escaped backslashes and quotes', () => {
    for (const end of ['', '\\', '"', '\\"', '\\\\', '\\\\"']) {
      for (const length of [0, 46, 47, 48, 49, 50, 51, 1000]) {
        const text = JSON.stringify({ image: 'x'.repeat(length) + end, model: 'a' })
        const edited = editMembers(Buffer.from(text), { model: '"b"' }).toString()
        assert.equal(edited, text.replace('"model":"a"', '"model":"b"'))
      }
    }
  })
})

const name = fc.constantFrom('logprobs', 'a', '"', 'logprobs\\', '', '"logprobs":[')
const { value } = fc.letrec<{ value: unknown }>((tie) => ({
  value: fc.oneof(
    { maxDepth: 5 },
    fc.oneof(name, fc.integer(), fc.constant(null), fc.boolean()),
    fc.array(tie('value'), { maxLength: 4 }),
    fc.dictionary(name, tie('value'), { maxKeys: 4 }),
  ),
}))
const isContainer = (given: unknown): boolean => typeof given === 'object' && given !== null

describe('a JSON text without the lists and objects of one name', () => {
  it('is the same as parsing it and removing them', () => {
    fc.assert(
      fc.property(value, fc.constantFrom(undefined, 1, '\t'), (given, space) => {
        const text = JSON.stringify(given, null, space)
        const expected: unknown = JSON.parse(text, (key, read) =>
          key === 'logprobs' && isContainer(read) ? null : read,
        )
        const less = withoutMember(Buffer.from(text), 'logprobs')
        assert.deepEqual(JSON.parse(less.toString()), expected)
      }),
      { numRuns: 120 },
    )
  })

  it('is returned also for an incomplete text', () => {
    for (const text of ['{"logprobs":[[1', '{"logprobs":{"a":"', '{"logprobs"', '{"logprobs":', '"'])
      assert.ok(withoutMember(Buffer.from(text), 'logprobs').length <= text.length + 4)
  })
})

describe('parsing', () => {
  it('leaves them out only if there are too many of them', () => {
    const few = '{"a":[1],"logprobs":[1,2]}'
    assert.deepEqual(parseJson(few), JSON.parse(few))
    const many = `{"a":[1],"logprobs":[${'0,'.repeat(500_000)}0]}`
    assert.deepEqual(parseJson(many), { a: [1], logprobs: null })
    assert.equal(parseJson(many.replace('logprobs', 'other')), undefined)
  })
})
