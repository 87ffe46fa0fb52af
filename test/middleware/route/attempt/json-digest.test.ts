import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import fc from 'fast-check'
import { JsonDigest } from '../../../../lib/middleware/route/attempt/json-digest.ts'

const KEPT_OF_STRING = 256

/** The digest of a text that comes in pieces of some lengths, in turn. */
function digestOf(text: string | Buffer, lengths: readonly number[] = [Number.POSITIVE_INFINITY]): string {
  const bytes = Buffer.from(text)
  const digest = new JsonDigest()
  for (let at = 0, i = 0; at < bytes.length; i++) {
    const length = Math.min(bytes.length - at, lengths[i % lengths.length] ?? 1)
    digest.push(bytes.subarray(at, at + length))
    at += length
  }
  return digest.text()
}

/** Whether the one is the other with strings and lists of numbers cut short. */
function isCutOf(cut: unknown, whole: unknown): boolean {
  if (typeof whole === 'string') return typeof cut === 'string' && isCutText(cut, whole)
  if (typeof whole !== 'object' || whole === null) return Object.is(cut, whole)
  if (typeof cut !== 'object' || cut === null) return false
  if (Array.isArray(whole)) {
    if (!Array.isArray(cut) || cut.length > whole.length) return false
    // Numbers are left out one after the other; what stands behind them is not.
    let at = 0
    for (const item of cut) {
      while (at < whole.length && !isCutOf(item, whole[at]) && typeof whole[at] === 'number') at++
      if (at === whole.length || !isCutOf(item, whole[at])) return false
      at++
    }
    return whole.slice(at).every((item) => typeof item === 'number')
  }
  const members = Object.entries(whole)
  return (
    Object.keys(cut).length === members.length &&
    members.every(([key, value]) =>
      Object.entries(cut).some(([cutKey, cutValue]) => {
        return isCutText(cutKey, key) && isCutOf(cutValue, value)
      }),
    )
  )
}

const isCutText = (cut: string, whole: string) =>
  whole.startsWith(cut) && (cut === whole || Buffer.byteLength(JSON.stringify(cut)) >= KEPT_OF_STRING)

describe('the digest of a JSON text', () => {
  it('is the text itself where nothing in it is long', () => {
    const text =
      '{ "a": [1, 2.5, -3e+7, 4],\n "b": {"c": "x\\"y\\\\", "d": [true, null, []], "é": "\\u00e9"} }'
    for (const length of [1, 2, 3, 7, 1000]) assert.equal(digestOf(text, [length]), text)
  })

  it('cuts long strings, wherever the pieces end', () => {
    const text = JSON.stringify({ data: [{ b64_json: 'A'.repeat(100_000) }], usage: { output_tokens: 7 } })
    for (const length of [1, 255, 256, 257, 65_536, 200_000]) {
      const digest = digestOf(text, [length])
      assert.ok(digest.length < 400, `${digest.length} bytes`)
      const { data, usage } = JSON.parse(digest) as { data: { b64_json: string }[]; usage: object }
      assert.equal(data[0]?.b64_json, 'A'.repeat(KEPT_OF_STRING))
      assert.deepEqual(usage, { output_tokens: 7 })
    }
  })

  it('cuts long lists of numbers and keeps what else stands in a list', () => {
    const numbers = Array.from({ length: 10_000 }, (_, i) => i / 7)
    const digest = JSON.parse(
      digestOf(JSON.stringify({ data: [{ embedding: numbers }, [1, 2, 3, 4, 5, 6, 'x', 7]] })),
    )
    assert.deepEqual(digest, { data: [{ embedding: numbers.slice(0, 4) }, [1, 2, 3, 4, 'x', 7]] })
  })

  for (const [what, inside] of [
    ['escaped quotes', '\\"'],
    ['backslashes', '\\\\'],
    ['backslashes and a quote', '\\\\\\"'],
    ['escapes of code points', '\\ud83d\\ude00'],
    ['several bytes a character', '😀é中'],
  ] as const) {
    it(`finds the end of a long string of ${what}`, () => {
      const text = `{"long":"${inside.repeat(300)}","last":1}`
      for (const length of [1, 2, 3, 5, 300, 10_000]) {
        const digest = JSON.parse(digestOf(text, [length])) as { long: string; last: number }
        assert.equal(digest.last, 1)
        assert.ok((JSON.parse(text) as { long: string }).long.startsWith(digest.long))
      }
    })
  }

  it('is no JSON where the text breaks off', () => {
    const text = JSON.stringify({
      data: [{ b64_json: 'A'.repeat(1000) }, { embedding: [1, 2, 3, 4, 5, 6, 7] }],
    })
    for (let end = 0; end < text.length; end++) {
      assert.throws(() => JSON.parse(digestOf(text.slice(0, end))), SyntaxError, text.slice(0, end))
    }
  })

  it('is a cut of any JSON, in any pieces', () => {
    const text = fc.oneof(
      fc.string({ unit: 'binary' }),
      fc.string({ unit: 'binary', minLength: 200, maxLength: 600 }),
    )
    const { value } = fc.letrec((tie) => ({
      value: fc.oneof(
        { maxDepth: 4 },
        text,
        fc.integer(),
        fc.double({ noNaN: true, noDefaultInfinity: true }).map((n) => (Object.is(n, -0) ? 0 : n)),
        fc.constantFrom(true, false, null),
        fc.array(fc.integer(), { maxLength: 20 }),
        fc.array(tie('value'), { maxLength: 8 }),
        fc.dictionary(text, tie('value'), { maxKeys: 5 }),
      ),
    }))
    const pieces = fc.array(fc.integer({ min: 1, max: 50 }), { minLength: 1 })
    fc.assert(
      fc.property(value, fc.constantFrom(0, 2), pieces, (whole, indent, lengths) => {
        const digest = digestOf(JSON.stringify(whole, null, indent), lengths)
        assert.ok(isCutOf(JSON.parse(digest), whole), digest)
      }),
      { numRuns: 60 },
    )
  })
})
