import assert from 'node:assert/strict'
import { once } from 'node:events'
import { describe, it } from 'node:test'
import { Worker } from 'node:worker_threads'
import fc from 'fast-check'
import { JsonFault, parseExactly, parseUnambiguous } from '../../../lib/core/json/index.ts'
import { doubledTexts } from '../../support/doubled-members.ts'

/** Writes a name plainly, or with all its characters as escapes. */
function written(name: string, isEscaped: boolean): string {
  if (!isEscaped) return JSON.stringify(name)
  const codes = Array.from({ length: name.length }, (_, i) =>
    name.charCodeAt(i).toString(16).padStart(4, '0'),
  )
  return `"${codes.map((code) => `\\u${code}`).join('')}"`
}

const NAMES = ['n', 'a', 'model', 'é', '"', '\n', '\\', '\\u0', '\\u006', '\\u0061', '', '__proto__', '1']
const members = fc.uniqueArray(
  fc.record({ name: fc.constantFrom(...NAMES), isEscaped: fc.boolean(), deep: fc.boolean() }),
  { selector: ({ name }) => name, maxLength: 5 },
)

describe('a text whose names have escapes', () => {
  it('is read correctly after any other texts', () => {
    fc.assert(
      fc.property(members, (given) => {
        const text = `{${given
          .map(({ name, isEscaped, deep }, i) => {
            const own = written(name, isEscaped)
            return `${own} : ${deep ? `[{${own}:"{:}\\"${i}"},{}]` : i}`
          })
          .join(',')}}`
        const entries = given.map(({ name, deep }, i): [string, unknown] => [
          name,
          deep ? [Object.fromEntries([[name, `{:}"${i}`]]), {}] : i,
        ])
        assert.deepEqual(parseExactly(text), Object.fromEntries(entries), text)
        assert.deepEqual(parseUnambiguous(Buffer.from(text)), Object.fromEntries(entries), text)
      }),
      { numRuns: 400 },
    )
  })

  it('does not lose a member because of another caller’s text', () => {
    for (let i = 0; i < 3; i++) {
      parseUnambiguous(Buffer.from('{"model":"m","\\\\":1}'))
      assert.deepEqual(parseUnambiguous(Buffer.from('{"model":"m","\\u006e":100}')), { model: 'm', n: 100 })
    }
    parseUnambiguous(Buffer.from('{"\\\\u006":1}'))
    assert.throws(
      () => parseUnambiguous(Buffer.from('{"\\u006dodel":"dear","model":"cheap"}')),
      /occurs twice/,
    )
  })
})

const parse = (text: string) => parseUnambiguous(Buffer.from(text))

describe('a JSON text that others read as well', () => {
  it('is read unchanged if every object has every member once', () => {
    fc.assert(
      fc.property(fc.json({ noUnicodeString: false, maxDepth: 6 }), fc.nat(3), (text, spaces) => {
        const spaced = JSON.stringify(JSON.parse(text), null, spaces)
        assert.deepEqual(parse(spaced), JSON.parse(spaced))
      }),
      { numRuns: 150 },
    )
    const odd =
      '{"__proto__":{"a":1},"constructor":1,"":{"":2},"a,\\"b":[{},[],"{\\"a\\":1,"],"1":1,"0":{"a":1}}'
    assert.deepEqual(parse(odd), JSON.parse(odd))
  })

  it('is refused with the name of a duplicate member, at any depth and in any spelling', () => {
    fc.assert(
      fc.property(
        fc.object({ maxDepth: 4, withNullPrototype: false, values: [fc.string(), fc.nat()] }),
        (value) => {
          for (const text of doubledTexts(value, {}).slice(0, 40)) {
            JSON.parse(text)
            assert.throws(() => parse(text), isRepeated, text)
          }
        },
      ),
      { numRuns: 100 },
    )
    for (const [text, name] of [
      ['{"a":1,"a":1}', 'a'],
      ['[{"b":[{"__proto__":1,"__proto__":{}}]}]', '__proto__'],
      ['{"":1,"c":{},"":2}', ''],
      ['{"\\ud83d":1,"\\uD83D":2}', '\ud83d'],
    ] as const)
      assert.throws(
        () => parse(text),
        (fault) => fault instanceof JsonFault && fault.named.param === name,
      )
  })

  it('is refused without a name if it is large', () => {
    const text = `{"a":"${'x'.repeat(70_000)}","b":{"c":1,"c":2}}`
    assert.throws(() => parse(text), /^Error: A member occurs twice in the same object/)
  })
})

/** Items of a list that is parsed in pieces: short ones, and one that is longer than a piece by itself. */
const longItems = fc
  .tuple(
    fc.array(
      fc.oneof(fc.json({ maxDepth: 3 }), fc.constantFrom('"]"', '"\\\\\\"],["', '[[]]', '{"a":[1]}')),
      {
        minLength: 1,
        maxLength: 12,
      },
    ),
    fc.constantFrom(10, 30_000, 30_000, 40_000),
  )
  .map(([some, long]) =>
    Array.from({ length: 3000 }, (_, i) =>
      i % 1500 === 1000 ? `"${'ü'.repeat(long)}"` : some[i % some.length],
    ),
  )

describe('a long text with long lists', () => {
  it('is read like a short one', () => {
    fc.assert(
      fc.property(longItems, fc.constantFrom(',', ' , ', ',\n'), fc.boolean(), (items, comma, isTop) => {
        const list = `[ ${items.join(comma)} ]`
        const text = isTop
          ? `[{"a":${list}}]`
          : `{"model":"m","a":${list} , "__proto__":${list},"b":{"c":${list}},"\\u0064":[]}`
        assert.deepEqual(parse(text), JSON.parse(text))
      }),
      { numRuns: 12 },
    )
  })

  it('is refused with one character missing or added at any position', () => {
    const items = Array.from(
      { length: 600 },
      (_, i) => `{"role":"user","content":"${'a text '.repeat(20)}${i} \\" ],"}`,
    )
    const text = `{"model":"m","messages":[${items.join(',')}],"stream":true}`
    const isRead = (changed: string): boolean => {
      try {
        return Boolean(parse(changed))
      } catch (fault) {
        assert.ok(fault instanceof JsonFault, changed)
        return false
      }
    }
    assert.ok(isRead(text))
    fc.assert(
      fc.property(
        fc.oneof(
          fc.nat(text.length - 1),
          fc.nat(40),
          fc.nat(40).map((n) => text.length - 1 - n),
        ),
        fc.constantFrom('', ',', ']', '[', '}', '{', '"', ' ', '0', '\\', ':'),
        fc.boolean(),
        (at, put, isReplaced) => {
          const changed = text.slice(0, at) + put + text.slice(isReplaced ? at + 1 : at)
          const expected = isJson(changed)
          assert.equal(isRead(changed), expected, `${put} at ${at}`)
          if (expected) assert.deepEqual(parse(changed), JSON.parse(changed))
        },
      ),
      { numRuns: 400 },
    )
    for (const list of [
      `[${' '.repeat(40_000)}]`,
      `[${' '.repeat(90_000)}]`,
      `["a", "${'x'.repeat(90_000)}", "b"]`,
      `["a", "${'x'.repeat(90_000)}",]`,
      `["a", ,"${'x'.repeat(90_000)}"]`,
      `["a""${'x'.repeat(90_000)}"]`,
      `[${' '.repeat(40_000)},]`,
      `[${'1,'.repeat(40_000)}]`,
      `[1${' '.repeat(40_000)}`,
      `["${'x'.repeat(40_000)}",]`,
      `["${'x'.repeat(40_000)}" , ,1]`,
      `[,"${'x'.repeat(40_000)}"]`,
    ])
      for (const pad of ['', 'x'.repeat(70_000)]) {
        const whole = `{"pad":"${pad}","a":${list}}`
        assert.equal(isRead(whole), isJson(whole), list.slice(0, 2))
      }
  })

  it('is refused if the list occurs twice', () => {
    const list = `[${`"${'text'.repeat(25)}",`.repeat(1000)}1]`
    for (const other of [list, '1', '[]'])
      for (const text of [`{"a":${list},"\\u0061":${other}}`, `{"a":${other},"a":${list}}`])
        assert.throws(() => parse(text), /occurs twice/)
  })
})

it('a text that seems to have very many members takes no memory for them', async () => {
  const lib = new URL('../../../lib/core/json/index.ts', import.meta.url).href
  for (const text of ['{"""""', '{"":""""', '{"a":"b""c":"d"']) {
    const script = `import(${JSON.stringify(lib)}).then(({ parseUnambiguous }) => {
      parseUnambiguous(Buffer.from('{' + ${JSON.stringify(text.slice(1))}.repeat(3_000_000)))
    })`
    const worker = new Worker(script, { eval: true, resourceLimits: { maxOldGenerationSizeMb: 64 } })
    const [error] = await once(worker, 'error')
    assert.equal(error.message, 'The request body is not valid JSON.')
  }
})

function isJson(text: string): boolean {
  try {
    JSON.parse(text)
    return true
  } catch {
    return false
  }
}

function isRepeated(fault: unknown): boolean {
  return fault instanceof JsonFault && fault.message.includes('occurs twice')
}
