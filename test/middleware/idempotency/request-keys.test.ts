import assert from 'node:assert/strict'
import { IncomingMessage } from 'node:http'
import { Socket } from 'node:net'
import { describe, it } from 'node:test'
import { BrokenRecord } from '../../../lib/core/store-guard/index.ts'
import { readKey, recordId } from '../../../lib/middleware/idempotency/idempotency-key.ts'
import { booleanIn, recordIn } from '../../../lib/middleware/idempotency/store-answers.ts'
import { uploadsOf } from '../../../lib/middleware/idempotency/uploads.ts'

/** A request that was sent these values of the header. */
function requestOf(...values: string[]): IncomingMessage {
  const req = new IncomingMessage(new Socket())
  req.headersDistinct = { 'idempotency-key': values }
  return req
}

describe('an Idempotency-Key', () => {
  for (const key of ['k', ' ', '~', 'x'.repeat(255), 'a, b', 'a,b', '"quoted"'])
    it(`may be ${JSON.stringify(key.slice(0, 12))} of ${key.length} characters`, () => {
      assert.equal(readKey(requestOf(key), key), key)
    })

  for (const key of ['', 'x'.repeat(256), 'é', 'a\tb', 'a\x7fb', 'a\nb', '\x1f', '€', 'ok\n'])
    it(`may not be ${JSON.stringify(key.slice(0, 12))} of ${key.length} characters`, () => {
      assert.throws(() => readKey(requestOf(key), key), {
        code: 'invalid_request',
        param: 'Idempotency-Key',
        message: /must hold 1 to 255 printable ASCII characters/,
      })
    })

  for (const values of [
    ['a', 'b'],
    ['a', 'a'],
    ['a', 'b', 'c'],
  ])
    it(`may not be sent ${values.length} times: ${values}`, () => {
      assert.throws(() => readKey(requestOf(...values), values.join(', ')), {
        code: 'invalid_request',
        param: 'Idempotency-Key',
        message: /was sent more than once; send one key/,
      })
    })

  it('has a record of its own in each scope, for each method and path', () => {
    const parts = ['acme', 'POST', '/orders', 'k'] as const
    const id = recordId(...parts)
    assert.equal(recordId(...parts), id)
    assert.match(id, /^[\w-]{43}$/)
    const others: [string, string, string, string][] = [
      ['globex', 'POST', '/orders', 'k'],
      ['acme', 'PUT', '/orders', 'k'],
      ['acme', 'POST', '/order', 'k'],
      ['acme', 'POST', '/orders', 'K'],
      // Parts that are the same in a row.
      ['acmeP', 'OST', '/orders', 'k'],
      ['acme', 'POST', '/ordersk', ''],
    ]
    assert.equal(new Set([id, ...others.map((other) => recordId(...other))]).size, 1 + others.length)
  })
})

describe('the answer of a store', () => {
  const record = { owner: 'o', fingerprint: 'f', state: 'running', expiresAt: 1 }
  for (const state of ['running', 'completed'])
    it(`to a claim may be a record that is ${state}, or nothing`, () => {
      const given = { ...record, state } as never
      assert.equal(recordIn(given), given)
      assert.equal(recordIn(undefined), undefined)
    })

  for (const broken of [
    null,
    false,
    0,
    'running',
    [],
    {},
    { ...record, owner: undefined },
    { ...record, owner: 7 },
    { ...record, fingerprint: null },
    { ...record, state: 'released' },
    { ...record, state: undefined },
  ])
    it(`to a claim may not be ${JSON.stringify(broken)}`, () => {
      assert.throws(
        () => recordIn(broken as never),
        (error: Error) => {
          assert.ok(error instanceof BrokenRecord)
          assert.match(error.message, /the answer of the store to "claim" is no record/)
          return true
        },
      )
    })

  it('to whether a claim is held is true or false', () => {
    for (const held of [true, false]) assert.equal(booleanIn(held), held)
    for (const broken of [undefined, null, 0, 1, 'true'])
      assert.throws(
        () => booleanIn(broken as never),
        (error: Error) => {
          assert.ok(error instanceof BrokenRecord)
          assert.match(error.message, /neither true nor false/)
          return true
        },
      )
  })
})

describe('what tells uploads apart', () => {
  const file = { size: 3 }

  it('is nothing where there are none', () => {
    assert.equal(uploadsOf({}), undefined)
    assert.equal(uploadsOf({ file: undefined, files: undefined }), undefined)
    assert.ok(uploadsOf({ file }))
    assert.ok(uploadsOf({ files: [] }))
  })

  for (const name of [
    ...['fieldname', 'originalname', 'originalFilename', 'name', 'mimetype'],
    ...['md5', 'hash', 'buffer', 'data'],
  ])
    it(`is "${name}" among others, wherever the file is kept`, () => {
      const [one, other] = ['one', 'other'].map((value) => ({ ...file, [name]: value }))
      for (const inside of [
        (each: unknown) => ({ file: each }),
        (each: unknown) => ({ files: [each] }),
        (each: unknown) => ({ files: { f: each } }),
        (each: unknown) => ({ files: { f: [file, each] } }),
      ]) {
        assert.notDeepEqual(uploadsOf(inside(one)), uploadsOf(inside(other)))
        assert.deepEqual(uploadsOf(inside(one)), uploadsOf(inside({ ...one })))
      }
    })

  it('is its size, and the field that it is in', () => {
    assert.notDeepEqual(uploadsOf({ file }), uploadsOf({ file: { size: 4 } }))
    assert.notDeepEqual(uploadsOf({ files: { a: file } }), uploadsOf({ files: { b: file } }))
    assert.notDeepEqual(uploadsOf({ files: [file] }), uploadsOf({ files: [file, file] }))
    assert.notDeepEqual(uploadsOf({ file }), uploadsOf({ files: file }))
  })

  it('is not where a file lies, nor what is deep in what has no size', () => {
    assert.deepEqual(
      uploadsOf({ file: { ...file, path: '/tmp/1' } }),
      uploadsOf({ file: { ...file, path: '/tmp/2' } }),
    )
    const loop: Record<string, unknown> = { name: 'x' }
    loop.self = loop
    assert.deepEqual(uploadsOf({ files: loop }), [
      undefined,
      { name: undefined, self: { name: undefined, self: { name: undefined, self: undefined } } },
    ])
    for (const odd of [null, 7, 'text', true])
      assert.deepEqual(uploadsOf({ file: odd }), [undefined, undefined])
  })
})
