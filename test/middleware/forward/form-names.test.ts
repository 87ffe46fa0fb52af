import assert from 'node:assert/strict'
import { Buffer } from 'node:buffer'
import { describe, it } from 'node:test'
import fc from 'fast-check'
import type { GatewayError } from '../../../lib/core/errors/index.ts'
import { FormNames } from '../../../lib/middleware/forward/kept/form-names.ts'

const BOUNDARY = 'a-b.1'
const MAX_HEAD_BYTES = 16 * 1024

function form(...parts: readonly (readonly [head: string, body: string])[]): string {
  const each = parts.map(([head, body]) => `--${BOUNDARY}\r\n${head}\r\n\r\n${body}\r\n`)
  return `${each.join('')}--${BOUNDARY}--\r\n`
}
const named = (name: string, more = '') => `content-disposition: form-data; name="${name}"${more}`

/** Why a form does not pass that comes in these pieces; undefined if it does. */
function refusalOf(...pieces: readonly (string | Buffer)[]): string | undefined {
  const names = new FormNames(BOUNDARY)
  try {
    for (const piece of pieces) names.read(Buffer.from(piece as string, 'latin1'))
    return undefined
  } catch (error) {
    const { code, param } = error as GatewayError
    return param ? `${code} ${param}` : code
  }
}

const FILE = 'unsupported_feature file_id'
const UNREADABLE = 'invalid_request'

describe('a form that passes by', () => {
  const rows: [what: string, text: string, refusal: string | undefined][] = [
    ['plain fields', form([named('model'), 'm'], [named('prompt'), 'p']), undefined],
    ['a file', form([named('image', '; filename="a.png"'), 'bytes']), undefined],
    ['a field that names a file', form([named('file_id'), 'f']), FILE],
    ['such a field behind others', form([named('model'), 'm'], [named('file_id'), 'f']), FILE],
    ['a list of them', form([named('file_ids[]'), 'f']), 'unsupported_feature file_ids[]'],
    ['a name without quotes', form(['content-disposition: form-data; name=file_id', 'f']), FILE],
    ['a name in another case', form(['Content-Disposition: form-data; NAME = "file_id"', 'f']), FILE],
    ['a name with an escape', form([named('file\\_id'), 'f']), FILE],
    ['a second name', form([named('model', '; name="file_id"'), 'f']), FILE],
    ['an encoded name', form(["content-disposition: form-data; name*=UTF-8''model", 'f']), UNREADABLE],
    [
      'a name in pieces',
      form(['content-disposition: form-data; name*0="file"; name*1="_id"', 'f']),
      UNREADABLE,
    ],
    [
      'encoded pieces of a name',
      form(["content-disposition: form-data; name *0* = x''file%5Fid", 'f']),
      UNREADABLE,
    ],
    ['JSON', form([`${named('model')}\r\ncontent-type: application/json`, '{}']), UNREADABLE],
    ['JSON of a kind', form([`${named('m')}\r\nContent-Type : application/ld+json`, '{}']), UNREADABLE],
    [
      'a file of JSON',
      form([`${named('image', '; filename="a.json"')}\r\ncontent-type: application/json`, '{}']),
      undefined,
    ],
    [
      'a file of JSON, in other letters',
      form([`${named('image', '; FileName="a.json"')}\r\nContent-Type: Application/JSON`, '{}']),
      undefined,
    ],
    [
      'what looks like a head in a body',
      form([named('prompt'), `\r\n\r\n${named('file_id')}\r\n\r\n`]),
      undefined,
    ],
    ['a field behind its end', `${form([named('model'), 'm'])}${form([named('file_id'), 'f'])}`, FILE],
    ['a text behind its end', `${form([named('model'), 'm'])}the end`, undefined],
    [
      'a field behind what looks like its end in a value',
      form([named('prompt'), `see --${BOUNDARY}-- below`], [named('file_id'), 'f']),
      FILE,
    ],
    [
      'a field behind what looks like a boundary in a value',
      form([named('prompt'), `see --${BOUNDARY} below`], [named('file_id'), 'f']),
      FILE,
    ],
    ['what comes before its begin', `${named('file_id')}\r\n\r\n${form([named('model'), 'm'])}`, undefined],
  ]
  for (const [what, text, refusal] of rows)
    it(`is ${refusal ? 'refused for' : 'let through with'} ${what}, however it comes`, () => {
      assert.equal(refusalOf(text), refusal)
      assert.equal(refusalOf(...text), refusal, 'byte by byte')
      const cuts = fc.array(fc.nat(text.length), { maxLength: 5 })
      fc.assert(
        fc.property(cuts, (places) => {
          const at = [0, ...places.sort((one, other) => one - other), text.length]
          const pieces = at.slice(1).map((end, i) => text.slice(at[i], end))
          assert.equal(refusalOf(...pieces), refusal)
        }),
        { numRuns: 30 },
      )
    })

  it('is refused for a head that is too long to be read, and let through with the longest', () => {
    const begin = `--${BOUNDARY}`
    const head = 'x'.repeat(MAX_HEAD_BYTES)
    assert.equal(refusalOf(begin, head), undefined)
    assert.equal(refusalOf(begin, head, 'x'), UNREADABLE)
    const before = form([named('prompt'), 'y'.repeat(2 * MAX_HEAD_BYTES)]).replace(/--\r\n$/, '')
    assert.equal(refusalOf(`${before}${head}`), undefined, 'whatever came before')
    assert.equal(refusalOf(`${before}${head}x`), UNREADABLE)
    assert.equal(refusalOf(begin, `${head.slice(4)}\r\n\r\n`, 'y'.repeat(5 * MAX_HEAD_BYTES)), undefined)
  })

  it('keeps nothing of the pieces that it was given', () => {
    const names = new FormNames(BOUNDARY)
    const piece = Buffer.from(`--${BOUNDARY}\r\n${named('file_')}`.slice(0, -1))
    names.read(piece)
    piece.fill('x')
    assert.throws(() => names.read(Buffer.from('id"\r\n\r\n')), { code: 'unsupported_feature' })
  })

  it('is told the beginning of a long name only', () => {
    const name = `${'x'.repeat(300)}_file_id`
    assert.equal(refusalOf(form([named(name), 'f'])), `unsupported_feature ${'x'.repeat(200)}`)
  })
})
