import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { FormFile, multipartBody, renamedForm } from '../../../lib/core/operations/index.ts'

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

  it('has another boundary each time', () => {
    assert.notEqual(multipartBody({}).type, multipartBody({}).type)
  })
})

describe('the form for a line', () => {
  const json = { model: 'm', provider: { only: ['a'] }, prompt: 'A cat', n: '2' }

  it('has the line’s name of the model, and nothing that is the gateway’s', () => {
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
