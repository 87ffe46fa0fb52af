import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import fc from 'fast-check'
import { fingerprintOf } from '../../../lib/core/repetition/index.ts'
import { cpuMsOf } from '../../support/cpu-time.ts'

const of = (body: unknown) => fingerprintOf('POST', '/v1/chat/completions', body)
const read = (text: string) => of(JSON.parse(text))

type Json = null | boolean | number | string | Json[] | { [key: string]: Json }

/** The same value, written by hand: the plain rule that the fingerprint has to follow. */
function canonical(value: Json): string {
  if (Array.isArray(value)) return `[${value.map(canonical).join()}]`
  if (typeof value !== 'object' || value === null) return JSON.stringify(value === 0 ? 0 : value)
  const members = Object.keys(value).sort()
  return `{${members.map((key) => `${JSON.stringify(key)}:${canonical(value[key] as Json)}`).join()}}`
}

/** Writes a value in another way that reads the same: other order, white space, escapes and number formats. */
function rewrite(value: Json, next: () => number): string {
  const space = () => [' ', '', '\n', '\t\r '][next() % 4] as string
  const string = (text: string) =>
    `"${[...Array(text.length).keys()].map((i) => (next() % 2 ? escaped(text, i) : JSON.stringify(text[i]).slice(1, -1))).join('')}"`
  const escaped = (text: string, i: number) => `\\u${text.charCodeAt(i).toString(16).padStart(4, '0')}`
  const write = (part: Json): string => {
    if (typeof part === 'string') return string(part)
    if (typeof part === 'number') return next() % 2 ? part.toExponential() : JSON.stringify(part)
    if (Array.isArray(part)) return `[${space()}${part.map(write).join(`${space()},`)}${space()}]`
    if (part === null || typeof part === 'boolean') return String(part)
    const members = Object.keys(part).map(
      (key) => `${string(key)}${space()}:${space()}${write(part[key] as Json)}`,
    )
    if (next() % 2) members.reverse()
    return `{${space()}${members.join(`${space()},`)}}`
  }
  return space() + write(value) + space()
}

describe('the fingerprint of a body', () => {
  it('is the same for every way of writing the value', () => {
    fc.assert(
      fc.property(fc.jsonValue({ maxDepth: 4 }), fc.infiniteStream(fc.nat(7)), (value, stream) => {
        const written = rewrite(value as Json, () => stream.next().value as number)
        assert.equal(read(written), read(JSON.stringify(value)))
      }),
      { numRuns: 120 },
    )
  })

  it('differs exactly if the values differ', () => {
    const leaf = fc.constantFrom<Json>(
      null,
      true,
      false,
      0,
      1,
      -1,
      1.5,
      '',
      '0',
      's1;',
      'a',
      'null',
      '__proto__',
    )
    const { value } = fc.letrec<{ value: Json }>((tie) => ({
      value: fc.oneof(
        { maxDepth: 3 },
        leaf,
        fc.array(tie('value'), { maxLength: 2 }),
        fc
          .array(fc.tuple(fc.constantFrom('a', 'b', '', '__proto__', 'constructor'), tie('value')), {
            maxLength: 2,
          })
          .map((members) => {
            const written = members.map(([key, member]) => `${JSON.stringify(key)}:${JSON.stringify(member)}`)
            return JSON.parse(`{${written.join()}}`) as Json
          }),
      ),
    }))
    const equalOnes = value.map((one) => [one, JSON.parse(JSON.stringify(one)) as Json] as const)
    fc.assert(
      fc.property(fc.oneof(equalOnes, fc.tuple(value, value)), ([one, other]) => {
        assert.equal(of(one) === of(other), canonical(one) === canonical(other))
      }),
      { numRuns: 200 },
    )
  })

  it('differs for values that are easily mixed up', () => {
    const values = [
      undefined,
      null,
      0,
      '0',
      false,
      '',
      [],
      {},
      [[]],
      [[], []],
      [null],
      '[]',
      '{}',
      { a: 1 },
      { a: '1' },
      { a: [1] },
      { a: { b: 1 } },
      { a: 1, b: 1 },
      ['a', 1],
      ['a', 'b'],
      ['ab'],
      { ab: '' },
      JSON.parse('{"__proto__":1}'),
      JSON.parse('{"__proto__":{"a":1}}'),
      JSON.parse('1e400'),
      JSON.parse('-1e400'),
      '\ud800',
      '\udfff',
      '\ufffd',
      '\ud83d\ude00',
      's1;a',
      ['s1;a'],
      's',
      'n0;',
      Buffer.from('a'),
      Buffer.from('b'),
      10n,
      new Date(0),
      new Date(1),
    ]
    assert.equal(new Set(values.map(of)).size, values.length)
  })

  it('depends on where an object, an array and a text end', () => {
    const alike: [unknown, unknown][] = [
      [{ a: { b: 1 }, c: 2 }, { a: { b: 1, c: 2 } }],
      [{ a: {}, b: 1 }, { a: { b: 1 } }],
      [[{ a: 1 }, 'b', 2], [{ a: 1, b: 2 }]],
      [[[1], 2], [[1, 2]]],
      [[[], 1], [[1]]],
      [{ a: [1], b: [] }, { a: [1, 'b', []] }],
      [
        ['a', 'bc'],
        ['ab', 'c'],
      ],
      [{ a: 'bc' }, { ab: 'c' }],
      // The same bytes: the one as UTF-16, as it has half a pair, the other as UTF-8.
      ['\ud841\uc380\ue480\u8080', 'A\u0600\u00c0\u4000'],
      [
        [Buffer.from('ab'), Buffer.from('c')],
        [Buffer.from('a'), Buffer.from('bc')],
      ],
      [
        ['x'.repeat(9000), 'y'],
        [`${'x'.repeat(9000)}y`, ''],
      ],
    ]
    for (const [one, other] of alike) assert.notEqual(of(one), of(other), JSON.stringify(one))
  })

  it('never changes: records outlive the process, and the version, that made them', () => {
    const messages = [{ role: 'user', content: 'é' }]
    const rows: [value: unknown, fingerprint: string][] = [
      [undefined, 'Qke6C58xhT9-AAc_xBdMQs_dEkwt9ksdi4q2T6wkxWU'],
      [
        { model: 'chat', n: 1.5, stream: true, stop: null, messages },
        't_-XMb7Pb4HTfH1onW8_yWloJXmIcLZK96mFNWB7AXM',
      ],
      [['x'.repeat(9000), 'y', 'x'.repeat(9000)], 'K3ceP5Fol_s27McRjY_bNoHjNyNlQ7PzUXCK95HjZuM'],
      [['\ud800', 10n, Buffer.from('ab'), new Date(0), false], '-QhMjND19rKNJ54KrM8kd0KS9U1v4vBOHVwftocXT7A'],
    ]
    for (const [value, fingerprint] of rows) assert.equal(of(value), fingerprint)
  })

  it('reads numbers as JavaScript does', () => {
    for (const [one, other] of [
      ['1', '1.0'],
      ['100', '1e2'],
      ['0', '-0'],
      ['0.1', '1e-1'],
      ['9007199254740992', '9007199254740993'],
    ] as const)
      assert.equal(read(`{"n":${one}}`), read(`{"n":${other}}`), `${one} and ${other}`)
    assert.notEqual(read('{"n":1}'), read('{"n":1.0000000000000002}'))
  })

  it('takes the last of members with the same name, as JSON.parse does', () => {
    assert.equal(read('{"a":1,"a":2}'), read('{"a":2}'))
    assert.notEqual(read('{"a":1,"a":2}'), read('{"a":1}'))
  })

  it('covers method and path', () => {
    const all = [
      fingerprintOf('POST', '/a', {}),
      fingerprintOf('PUT', '/a', {}),
      fingerprintOf('POST', '/b', {}),
      fingerprintOf('POST/', 'a', {}),
    ]
    assert.equal(new Set(all).size, all.length)
    assert.match(all[0]!, /^[\w-]{43}$/)
  })

  it('is computed for strings of any length, cut at any place for hashing', () => {
    const long = 'é\ud83d\ude00'.repeat(30_000)
    const bodies = [long, `${long}x`, `${long.slice(0, -2)}\ud83d`, long.slice(1)]
    assert.equal(new Set(bodies.map(of)).size, bodies.length)
    for (const length of [8190, 8191, 8192, 8193, 8194]) {
      const text = 'x'.repeat(length)
      assert.equal(of({ a: text, b: text }), of({ b: text, a: text }))
      assert.notEqual(of({ a: text, b: `${text}y` }), of({ a: `${text}y`, b: text }))
    }
  })

  it('is computed at any depth', () => {
    const depth = 100_000
    const arrays = JSON.parse(`${'['.repeat(depth)}1${']'.repeat(depth)}`)
    const objects = JSON.parse(`${'{"a":'.repeat(depth)}1${'}'.repeat(depth)}`)
    assert.notEqual(of(arrays), of(objects))
  })

  it('of 20 MB takes no longer than reading them did', () => {
    const image = {
      type: 'image_url',
      image_url: { url: `data:image/png;base64,${'iVBORw0K'.repeat(2_500_000)}` },
    }
    const text = JSON.stringify({ model: 'chat', messages: [{ role: 'user', content: [image] }] })
    let body: unknown
    const parsed = cpuMsOf(() => {
      body = JSON.parse(text)
    })
    const hashed = cpuMsOf(() => void of(body))
    // Generous: it takes a tenth of a second at most on a machine that has other things to do.
    assert.ok(hashed < 10 * parsed + 300, `${hashed} ms after ${parsed} ms of parsing`)
  })
})
