import assert from 'node:assert/strict'
import { IncomingMessage, type OutgoingHttpHeaders, ServerResponse } from 'node:http'
import { Socket } from 'node:net'
import { describe, it } from 'node:test'
import { RecordedAnswer } from '../../../lib/core/repetition/index.ts'

/** The record of an answer that `give` gives, through a response that has these headers already. */
function kept(
  give: (res: ServerResponse, add: RecordedAnswer['add']) => void,
  { limit = 100, before = {} }: { limit?: number; before?: OutgoingHttpHeaders } = {},
) {
  const res = new ServerResponse(new IncomingMessage(new Socket()))
  for (const [name, value] of Object.entries(before)) res.setHeader(name, value as string)
  const answer = new RecordedAnswer(res, limit)
  give(res, (chunk, encoding) => answer.add(chunk, encoding))
  const text = answer.encode()
  return text === undefined ? undefined : JSON.parse(text)
}

/** Writes a head in one of the ways that Node takes. */
const head = (...given: unknown[]) =>
  kept((res) => void (res.writeHead as (...all: unknown[]) => unknown)(...given))

describe('the recorded head of an answer', () => {
  for (const [name, given, status, headers] of [
    ['a status', [201], 201, {}],
    ['a status and a reason', [201, 'Fine'], 201, {}],
    [
      'an object',
      [201, { 'X-Mode': 'a', Link: ['b', 'c'], 'x-n': 7 }],
      201,
      { 'x-mode': 'a', link: ['b', 'c'], 'x-n': 7 },
    ],
    ['a reason and an object', [202, 'Fine', { 'X-Mode': 'a' }], 202, { 'x-mode': 'a' }],
    [
      'names and values in turn',
      [203, ['X-Mode', 'a', 'X-Other', 'b']],
      203,
      { 'x-mode': 'a', 'x-other': 'b' },
    ],
    ['a list with a reason', [203, 'Fine', ['X-Mode', 'a']], 203, { 'x-mode': 'a' }],
    [
      'a list of pairs',
      [
        200,
        [
          ['X-Mode', 'a'],
          ['X-Other', 'b'],
        ],
      ],
      200,
      { 'x-mode': 'a', 'x-other': 'b' },
    ],
    ['an empty list', [200, []], 200, {}],
    ['a name twice', [200, ['Link', 'a', 'link', 'b']], 200, { link: ['a', 'b'] }],
    [
      'a name twice with lists',
      [
        200,
        [
          ['Link', ['a', 'b']],
          ['link', 'c'],
        ],
      ],
      200,
      { link: ['a', 'b', 'c'] },
    ],
    ['a name three times', [200, ['L', 'a', 'l', 'b', 'L', 'c']], 200, { l: ['a', 'b', 'c'] }],
    ['nothing of headers', [200, undefined], 200, {}],
    ['null of headers', [200, 'OK', null], 200, {}],
  ] as const)
    it(`is that of writeHead with ${name}`, () => {
      const told = head(...given)
      assert.deepEqual([told.status, told.headers], [status, headers])
    })

  it('is that of the response if writeHead is not called, or has no headers', () => {
    const set = (res: ServerResponse) => {
      res.statusCode = 207
      res.setHeader('X-Mode', 'a').setHeader('x-list', ['b', 'c'])
    }
    const expected = {
      status: 207,
      headers: { 'x-mode': 'a', 'x-list': ['b', 'c'] },
      body: 'text',
      encoding: 'utf8',
    }
    assert.deepEqual(
      kept((res, add) => {
        set(res)
        add('text', undefined)
      }),
      expected,
    )
    assert.deepEqual(
      kept((res, add) => {
        set(res)
        res.writeHead(207)
        add('text', undefined)
      }),
      expected,
    )
    assert.deepEqual(kept(set), { ...expected, body: '' })
  })

  it('is the first one, and is written as it was given', () => {
    const told = kept((res, add) => {
      assert.equal(res.writeHead(201, { 'x-mode': 'a' }), res)
      assert.deepEqual([res.statusCode, res.headersSent], [201, true])
      res.statusCode = 500
      add('x', undefined)
    })
    assert.deepEqual([told.status, told.headers], [201, { 'x-mode': 'a' }])
  })

  it('has no headers of a single exchange, and no cookie', () => {
    const told = kept((res) => {
      for (const name of [
        ...['Connection', 'Date', 'Keep-Alive', 'Set-Cookie', 'Trailer', 'Transfer-Encoding', 'Upgrade'],
        'X-Mode',
      ])
        res.setHeader(name, 'a')
      res.setHeader('content-length', 0)
    })
    assert.deepEqual(told.headers, { 'x-mode': 'a' })
  })

  it('has only those earlier headers that the handler has changed', () => {
    const before = { 'x-same': '1', 'x-list': ['a', 'b'], 'x-changed': 'a', 'x-removed': 'a' }
    const told = kept(
      (res) => {
        res.setHeader('x-same', 1).setHeader('x-changed', 'b').setHeader('x-list', ['a', 'b'])
        res.removeHeader('x-removed')
        res.setHeader('x-new', 'c')
      },
      { before },
    )
    assert.deepEqual(told.headers, { 'x-changed': 'b', 'x-new': 'c', 'x-removed': null })
  })
})

describe('the recorded body of an answer', () => {
  const body = (...chunks: [unknown, unknown?][]) => {
    const told = kept((_res, add) => {
      for (const [chunk, encoding] of chunks) add(chunk, encoding)
    })
    return [told.body, told.encoding]
  }

  it('is its text, in any encoding and pieces', () => {
    const euro = Buffer.from('€')
    assert.deepEqual(body(['a', 'utf8'], ['é']), ['aé', 'utf8'])
    assert.deepEqual(body([euro.subarray(0, 1)], [euro.subarray(1)]), ['€', 'utf8'])
    assert.deepEqual(body(['c3a9', 'hex'], ['YQ==', 'base64']), ['éa', 'utf8'])
    assert.deepEqual(body([new Uint8Array([97])]), ['a', 'utf8'])
    assert.deepEqual(body(['a', 'no encoding'], ['b', () => {}]), ['ab', 'utf8'])
    assert.deepEqual(body(), ['', 'utf8'])
  })

  it('is its bytes if they are not text', () => {
    assert.deepEqual(body([Buffer.from([0xff, 0])]), ['/wA=', 'base64'])
    assert.deepEqual(body(['é', 'latin1']), ['6Q==', 'base64'])
    assert.deepEqual(body(['a'], [Buffer.from([0xe2])]), ['YeI=', 'base64'])
  })

  it('ignores a chunk of an invalid type', () => {
    assert.deepEqual(body([undefined], [null], [() => {}], ['a']), ['a', 'utf8'])
  })

  it('is a copy from the moment of sending', () => {
    const own = Buffer.from('first')
    const told = kept((_res, add) => {
      add(own, undefined)
      own.fill('x')
      add(own, undefined)
    })
    assert.equal(told.body, 'firstxxxxx')
  })

  it('is kept up to its limit, and discarded beyond it', () => {
    const of = (...chunks: string[]) =>
      kept(
        (_res, add) => {
          for (const chunk of chunks) add(chunk, undefined)
        },
        { limit: 4 },
      )?.body
    assert.deepEqual([of('1234'), of('12', '34'), of('€1')], ['1234', '1234', '€1'])
    assert.deepEqual([of('12345'), of('1234', '5'), of('12345', ''), of('€€')], Array(4).fill(undefined))
  })

  for (const [status, length, given, isKept] of [
    [200, 3, 'abc', true],
    [200, '3', 'abc', true],
    [200, 4, 'abc', false],
    [200, 2, 'abc', false],
    [200, 3, '€', true],
    [204, 3, '', true],
    [205, 3, '', true],
    [304, 3, '', true],
    [203, 3, '', false],
    [200, 0, '', true],
  ] as const)
    it(`of ${JSON.stringify(given)} is ${isKept ? '' : 'not '}kept at ${status} with a declared length of ${length}`, () => {
      for (const how of ['setHeader', 'writeHead'] as const) {
        const told = kept((res, add) => {
          if (how === 'setHeader') {
            res.statusCode = status
            res.setHeader('Content-Length', length)
          } else res.writeHead(status, { 'Content-Length': length })
          add(given, undefined)
        })
        assert.equal(told !== undefined, isKept, how)
        assert.equal(told?.headers['content-length'], undefined)
      }
    })
})
