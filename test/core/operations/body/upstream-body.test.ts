import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { editMembers, memberText } from '../../../../lib/core/json/index.ts'
import { membersOf } from '../../../../lib/core/json/json-text.ts'
import { meteredBody, renamedBody } from '../../../../lib/core/operations/body/upstream-body.ts'
import { FormFile, multipartBody, renamedForm } from '../../../../lib/core/operations/index.ts'

type Edits = Record<string, string | null>

const edited = (text: string, edits: Edits) => editMembers(Buffer.from(text), edits).toString()
/** A name as JSON may write it, too. */
const escaped = (name: string) =>
  [...name].map((char) => `\\u${char.charCodeAt(0).toString(16).padStart(4, '0')}`).join('')

describe('a body with changed members', () => {
  const THREE = '{"a":1,"b":2,"c":3}'
  const WIDE = ' {\t"a" : 1 ,\n"b" : [ 2 , {"a":0} ] ,\r"c" : "}" } '
  const rows: [body: string, edits: Edits, after: string][] = [
    [THREE, {}, THREE],
    [THREE, { d: null }, THREE],
    [THREE, { a: null }, '{"b":2,"c":3}'],
    [THREE, { b: null }, '{"a":1,"c":3}'],
    [THREE, { c: null }, '{"a":1,"b":2}'],
    [THREE, { a: null, b: null }, '{"c":3}'],
    [THREE, { a: null, c: null }, '{"b":2}'],
    [THREE, { b: null, c: null }, '{"a":1}'],
    [THREE, { a: null, b: null, c: null }, '{}'],
    [THREE, { a: '10', c: '[]' }, '{"a":10,"b":2,"c":[]}'],
    [THREE, { d: '4', e: '5' }, '{"a":1,"b":2,"c":3,"d":4,"e":5}'],
    [THREE, { c: null, d: '4' }, '{"a":1,"b":2,"d":4}'],
    [THREE, { c: null, b: '0', d: '4' }, '{"a":1,"b":0,"d":4}'],
    [THREE, { a: null, b: null, c: null, d: '4', e: '5' }, '{"d":4,"e":5}'],
    [WIDE, { a: null }, ' {\t"b" : [ 2 , {"a":0} ] ,\r"c" : "}" } '],
    [WIDE, { b: null }, ' {\t"a" : 1 ,\n"c" : "}" } '],
    [WIDE, { c: null }, ' {\t"a" : 1 ,\n"b" : [ 2 , {"a":0} ] } '],
    [WIDE, { a: '9', b: '"x"', c: 'null' }, ' {\t"a" : 9 ,\n"b" : "x" ,\r"c" : null } '],
    [WIDE, { d: '4' }, ' {\t"a" : 1 ,\n"b" : [ 2 , {"a":0} ] ,\r"c" : "}","d":4 } '],
    ['{}', { d: '4', e: '5' }, '{"d":4,"e":5}'],
    ['{ }', { d: '4' }, '{"d":4 }'],
    ['{"a":1,"b":2,"a":3}', { a: '4' }, '{"a":4,"b":2,"a":4}'],
    ['{"a":1,"b":2,"a":3}', { a: null }, '{"b":2}'],
    ['{"a":1,"a":3}', { a: null, d: '4' }, '{"d":4}'],
    ['{"a":"é","b":1}', { a: '"é"', b: '"ü"' }, '{"a":"é","b":"ü"}'],
    ['{"a":"e","b":1}', { a: '"é€"' }, '{"a":"é€","b":1}'],
    ['{"a":"é"}', { 'ü"': '1' }, '{"a":"é","ü\\"":1}'],
    ['{"a":{"b":"}"},"c":[{},[]],"d":"\\"}"}', { d: '1' }, '{"a":{"b":"}"},"c":[{},[]],"d":1}'],
  ]
  for (const [body, edits, after] of rows)
    it(`${JSON.stringify(edits)} of ${body}`, () => assert.equal(edited(body, edits), after))

  it('is the same bytes if nothing changes', () => {
    const raw = Buffer.from(THREE)
    for (const edits of [{}, { d: null }, { a: '1' }, { a: '1', b: '2', c: '3' }])
      assert.equal(editMembers(raw, edits), raw)
  })

  it('is changed by the decoded name of a member, in any spelling', () => {
    for (const name of ['a', 'model', 'é', 'a"b', '', '日本']) {
      for (const written of [JSON.stringify(name), `"${escaped(name)}"`])
        assert.equal(edited(`{${written}:1}`, { [name]: '2' }), `{${written}:2}`, written)
    }
    const others = ['b', 'aa', 'A', '', '\\u0062', '\\u0061\\u0061', 'é', '\\n', 'x'.repeat(7), 'é'.repeat(9)]
    for (const other of others) assert.equal(edited(`{"${other}":1}`, { a: null }), `{"${other}":1}`, other)
  })
})

describe('the text of a member', () => {
  it('is everything after its name, to the end of the value', () => {
    const values = [
      '1',
      '-1.5e3',
      'true',
      'null',
      '""',
      '"a\\"b"',
      '[]',
      '[1,{"a":"]"}]',
      '{}',
      '{"x":{"y":[]}}',
    ]
    for (const value of values)
      for (const text of [`{"a":${value}}`, `{"b":0,"a":${value},"c":1}`, `{ "a" :\n${value}\t}`])
        assert.equal(memberText(Buffer.from(text), 'a'), value, text)
  })

  it('is the last of two, and absent if the member is absent', () => {
    assert.equal(memberText(Buffer.from('{"a":1,"a":2,"b":3}'), 'a'), '2')
    for (const text of ['{}', '{"b":{"a":1}}', '{"b":"a"}'])
      assert.equal(memberText(Buffer.from(text), 'a'), undefined, text)
  })

  it('is compared in its written form', () => {
    const reads = (value: string, text: string) => {
      const [member] = membersOf(Buffer.from(`{"a":${value},"b":0}`))
      return member?.reads(text)
    }
    for (const value of ['1', '"model"', '{"a":1}']) assert.equal(reads(value, value), true)
    for (const [value, text] of [
      ['1', '2'],
      ['12', '1'],
      ['1', '12'],
      ['"ab"', '"ac"'],
      ['"é"', '"Ã©"'],
    ] as const)
      assert.equal(reads(value, text), false, `${value} ${text}`)
  })
})

describe('the body for a line', () => {
  it('is the caller’s body if the line has the same name for the model', () => {
    const raw = Buffer.from('{"model":"m"}')
    assert.equal(renamedBody(raw, { model: 'm' }, 'm'), raw)
    const rows: [body: string, model: string, after: string][] = [
      ['{"model":"m","n":1}', 'other', '{"model":"other","n":1}'],
      ['{"model":"m"}', 'a"b', '{"model":"a\\"b"}'],
      ['{"model":"m","provider":null}', 'm', '{"model":"m"}'],
      ['{"provider":{"only":[]},"model":"m"}', 'other', '{"model":"other"}'],
      ['{"n":1}', 'm', '{"n":1,"model":"m"}'],
    ]
    for (const [body, model, after] of rows)
      assert.equal(renamedBody(Buffer.from(body), JSON.parse(body), model).toString(), after)
  })

  it('requests the usage of a stream, in addition to the members of the caller', () => {
    const metered = (members: string) => {
      const body = `{"model":"m"${members}}`
      return meteredBody(Buffer.from(body), JSON.parse(body), { model: 'm' }).toString().slice(12, -1)
    }
    const asked = ',"stream_options":{"include_usage":true}'
    const rows: [members: string, after: string][] = [
      ['', ''],
      [',"stream":false', ',"stream":false'],
      [',"stream":null,"stream_options":{}', ',"stream":null,"stream_options":{}'],
      [',"stream":true', `,"stream":true${asked}`],
      [`,"stream":true${asked}`, `,"stream":true${asked}`],
      [',"stream":true,"stream_options":null', `,"stream":true${asked}`],
      [',"stream":true,"stream_options":{}', `,"stream":true${asked}`],
      [',"stream":true,"stream_options":{"include_usage":false}', `,"stream":true${asked}`],
      [
        ',"stream_options":{"a": 1},"stream":true',
        ',"stream_options":{"a": 1,"include_usage":true},"stream":true',
      ],
    ]
    for (const [members, after] of rows) assert.equal(metered(members), after)
  })
})

type Json = Record<string, unknown>

/** The parts of a form: what stands between two boundaries. */
function partsOf({ type, bytes }: ReturnType<typeof multipartBody>): string[] {
  const boundary = /^multipart\/form-data; boundary=(form-[0-9a-f]{32})$/.exec(type)?.[1]
  assert.ok(boundary, type)
  const pieces = bytes.toString('latin1').split(`--${boundary}`)
  assert.equal(pieces.shift(), '')
  assert.equal(pieces.pop(), '--\r\n')
  return pieces.map((piece) => {
    assert.ok(piece.startsWith('\r\n') && piece.endsWith('\r\n'), JSON.stringify(piece))
    return piece.slice(2, -2)
  })
}
const field = (name: string, text: string) => `content-disposition: form-data; name="${name}"\r\n\r\n${text}`

describe('a form', () => {
  const rows: [what: string, members: Json, fields: [name: string, text: string][]][] = [
    ['nothing', {}, []],
    ['a text', { prompt: 'A cat' }, [['prompt', 'A cat']]],
    [
      'numbers and truth',
      { n: 0, ok: false },
      [
        ['n', '0'],
        ['ok', 'false'],
      ],
    ],
    ['no value', { a: null, b: undefined }, []],
    [
      'a list',
      { tags: ['a', 7] },
      [
        ['tags[]', 'a'],
        ['tags[]', '7'],
      ],
    ],
    ['an object', { a: { b: 1, c: null } }, [['a[b]', '1']]],
    ['objects in each other', { a: { b: { c: 1 } } }, [['a[b][c]', '1']]],
    ['a list in an object', { a: { b: ['x'] } }, [['a[b][]', 'x']]],
    [
      'objects in a list',
      { a: [{ b: 1 }, { c: 2 }] },
      [
        ['a[][b]', '1'],
        ['a[][c]', '2'],
      ],
    ],
    ['names that would end the header', { 'a"b\r\nc"': 'x' }, [['a%22b%0D%0Ac%22', 'x']]],
  ]
  for (const [what, members, fields] of rows)
    it(`has ${what}`, () =>
      assert.deepEqual(
        partsOf(multipartBody(members)),
        fields.map(([name, text]) => field(name, text)),
      ))

  it('has files with their bytes, name and type', () => {
    const bytes = Buffer.of(0, 255, 13, 10, 45, 45)
    const file = (name: string, filename: string) =>
      `content-disposition: form-data; name="${name}"; filename="${filename}"\r\n` +
      `content-type: image/png\r\n\r\n${bytes.toString('latin1')}`
    const named = new FormFile('a"b.png', 'image/png', bytes)
    const nameless = new FormFile('', 'image/png', bytes)
    assert.deepEqual(partsOf(multipartBody({ image: named, more: [nameless], deep: { mask: named } })), [
      file('image', 'a%22b.png'),
      file('more[]', 'file'),
      file('deep[mask]', 'a%22b.png'),
    ])
  })

  it('has a different boundary each time', () => {
    assert.notEqual(multipartBody({}).type, multipartBody({}).type)
  })
})

describe('the form for a line', () => {
  const json = { model: 'm', provider: { only: ['a'] }, prompt: 'A cat', n: '2' }

  it('has the line’s name for the model, and no members of the gateway', () => {
    assert.deepEqual(partsOf(renamedForm(json, 'other')), [
      field('model', 'other'),
      field('prompt', 'A cat'),
      field('n', '2'),
    ])
  })

  it('has the changes of the line', () => {
    const edits = { prompt: '"A dog"', n: null, size: '{"w":1}' }
    assert.deepEqual(partsOf(renamedForm(json, 'm', edits)), [
      field('model', 'm'),
      field('prompt', 'A dog'),
      field('size[w]', '1'),
    ])
  })
})
