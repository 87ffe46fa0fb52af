import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import {
  endOfString,
  isJsonObject,
  isText,
  JsonFault,
  newTally,
  nonEmptyString,
  objectsIn,
  parseJson,
  parseJsonObject,
  parseUnambiguous,
  tokenCount,
} from '../../../lib/core/json/index.ts'

const VALUES = [undefined, null, true, 0, 1, '', 'a', [], [1], {}, { a: 1 }]
const those = (is: (value: unknown) => unknown) => VALUES.filter((value) => is(value) === true)

describe('a JSON value', () => {
  it('can be an object, a text, or neither', () => {
    assert.deepEqual(those(isJsonObject), [{}, { a: 1 }])
    assert.deepEqual(those(isText), ['a'])
    assert.deepEqual(
      VALUES.map(nonEmptyString).filter((value) => value !== undefined),
      ['a'],
    )
  })

  it('may contain objects if it is a list', () => {
    assert.deepEqual(objectsIn(VALUES), [{}, { a: 1 }])
    for (const none of [undefined, null, 'ab', { 0: {}, length: 1 }]) assert.deepEqual(objectsIn(none), [])
  })

  it('is a token count if it is an exact whole number', () => {
    for (const count of [0, 1, Number.MAX_SAFE_INTEGER]) assert.equal(tokenCount(count), count)
    for (const odd of [-1, 0.5, 2 ** 53, Number.NaN, '1', true, [1], null, undefined])
      assert.equal(tokenCount(odd), undefined, String(odd))
  })
})

describe('a text that holds an object', () => {
  it('is parsed to that object; any other text is not', () => {
    assert.deepEqual(parseJsonObject('{"a":[1]}'), { a: [1] })
    for (const text of ['', '[1]', '1', 'null', '"a"', '{"a":1', '{}}'])
      assert.equal(parseJsonObject(text), undefined)
  })

  it('is not parsed if it is too large, alone or with the others of a request', () => {
    const deep = (levels: number) => `${'{"a":'.repeat(levels)}1${'}'.repeat(levels)}`
    assert.ok(parseJsonObject(deep(128)))
    assert.equal(parseJsonObject(deep(129)), undefined)
    const tally = newTally()
    const text = `{"a":[${'1,'.repeat(249_990)}1]}`
    assert.ok(parseJsonObject(text, tally))
    assert.ok(parseJsonObject(text, tally))
    assert.equal(parseJsonObject(text, tally), undefined)
    assert.equal(parseJsonObject('{"a":[1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18]}', tally), undefined)
  })

  it('has no lone surrogates where it is large', () => {
    const text = (length: number) => `{"a":"\\ud800${'x'.repeat(length - '{"a":"\\ud800"}'.length)}"}`
    const first = (length: number) => String(parseJsonObject(text(length))?.a).charCodeAt(0)
    assert.equal(first(256 * 1024), 0xd800)
    assert.equal(first(256 * 1024 + 1), 0xfffd)
  })

  it('is parsed with the given function', () => {
    assert.deepEqual(
      parseJsonObject('{}', undefined, () => ({ b: 1 })),
      { b: 1 },
    )
    assert.deepEqual(
      parseJson('{}', undefined, () => 7),
      7,
    )
  })
})

describe('a text of any value', () => {
  it('is parsed, or undefined if it is invalid', () => {
    for (const text of ['1', 'null', '[{}]', '"a"']) assert.deepEqual(parseJson(text), JSON.parse(text))
    for (const text of ['', '{', '[1,]', 'undefined']) assert.equal(parseJson(text), undefined)
  })

  it('is measured against the remaining bytes', () => {
    const text = `[${'1,'.repeat(300)}1]`
    assert.deepEqual(parseJson(text, Buffer.from(text)), JSON.parse(text))
    assert.equal(parseJson(text, Buffer.from('['.repeat(300))), undefined)
  })
})

describe('a body', () => {
  const fault = (raw: Buffer): [string, unknown] => {
    try {
      parseUnambiguous(raw)
    } catch (error) {
      assert.ok(error instanceof JsonFault)
      return [error.message, error.named.param]
    }
    return assert.fail('it has no fault')
  }
  const twice = (name: string) =>
    `${JSON.stringify(name)} occurs twice in the same object of the body. Send it once.`

  it('reports what is wrong with it', () => {
    assert.deepEqual(fault(Buffer.from([0x22, 0xff, 0x22])), [
      'The request body is not valid UTF-8.',
      undefined,
    ])
    for (const text of ['', '{', '{"a":1}}'])
      assert.deepEqual(fault(Buffer.from(text)), ['The request body is not valid JSON.', undefined])
    const deep = `${'['.repeat(129)}${']'.repeat(129)}`
    assert.deepEqual(fault(Buffer.from(deep)), ['The body is nested more than 128 levels deep.', undefined])
  })

  it('reports a duplicate member, with at most 200 characters of its name', () => {
    const name = 'n'.repeat(300)
    const text = `{"${name}":1,"${name}":1}`
    assert.deepEqual(fault(Buffer.from(text)), [twice(name.slice(0, 200)), name.slice(0, 200)])
    for (const spaced of [
      '{"a" \n\t: 1,"b":{"a":"a"},"c":["a","a"],"a"\r:1}',
      '{"b":"\\"a\\":","a":"}{","a":1}',
    ])
      assert.deepEqual(fault(Buffer.from(spaced)), [twice('a'), 'a'])
  })

  it('reports no member name if it is larger than 64 KiB', () => {
    const text = (length: number) => {
      const rest = '{"a":1,"a":""}'
      return Buffer.from(rest.replace('""', `"${'x'.repeat(length - rest.length)}"`))
    }
    assert.equal(fault(text(64 * 1024))[1], 'a')
    assert.deepEqual(fault(text(64 * 1024 + 1)), [
      'A member occurs twice in the same object of the body. Send it once.',
      undefined,
    ])
  })

  it('is measured alone, whatever was measured before', () => {
    const many = Buffer.from(`[${'1,'.repeat(499_998)}1]`)
    for (let i = 0; i < 2; i++) assert.equal((parseUnambiguous(many) as unknown[]).length, 499_999)
  })
})

describe('the end of a string', () => {
  const end = (text: string, start = 0) => endOfString(Buffer.from(text), start)

  it('is after the first unescaped quote, at any distance', () => {
    for (const length of [0, 1, 46, 47, 48, 49, 50, 96, 97, 1000, 5000]) {
      const plain = 'x'.repeat(length)
      assert.equal(end(`"${plain}" "`), length + 2)
      assert.equal(end(`  "${plain}"`, 2), length + 4)
      for (const tail of ['\\"', '\\\\', '\\\\\\"', '\\"\\"\\"']) {
        const text = `"${plain}${tail}"`
        assert.equal(end(`${text},"y"`), text.length, text)
        assert.equal(end(`${text.slice(0, -1)}${plain}",`), text.length + length)
      }
    }
  })

  it('is the end of the text if the string is not closed', () => {
    for (const length of [0, 1, 47, 48, 49, 200]) {
      const plain = 'x'.repeat(length)
      for (const text of [`"${plain}`, `"${plain}\\`, `"${plain}\\"`, `"${plain}\\"y`])
        assert.equal(end(text), text.length)
    }
  })
})
