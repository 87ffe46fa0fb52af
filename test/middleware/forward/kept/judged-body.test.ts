import assert from 'node:assert/strict'
import { getEventListeners } from 'node:events'
import { describe, it } from 'node:test'
import { GatewayError } from '../../../../lib/core/errors/index.ts'
import { bytesOf } from '../../../support/byte-upstream.ts'
import {
  assertUnread,
  judge,
  LIMIT,
  NAMED,
  NAMING,
  namedIn,
  refusalOf,
  type SentRequest,
  sentRequest,
  typed,
  wholeRequest,
} from './sent-body.ts'

describe('a body that passes unread', () => {
  it('is none, whatever its type says', async () => {
    for (const type of ['application/json', 'multipart/form-data', 'text/plain', ''])
      for (const length of [{}, { 'content-length': '0' }]) {
        const req = sentRequest({ 'content-type': type, 'content-encoding': 'gzip', ...length })
        assertUnread(await judge(req), req, type)
      }
  })

  it('is of a type that no upstream reads as JSON or as a form', async () => {
    for (const type of [
      ...['audio/wav', 'font/woff2', 'image/png', 'model/obj', 'video/mp4', 'VIDEO/MP4'],
      ...['gzip', 'octet-stream', 'pdf', 'sdp', 'x-tar', 'zip', 'ZIP;a=b'].map(
        (name) => `application/${name}`,
      ),
      ...['multipart/mixed; boundary=x', 'Multipart/Related'],
    ]) {
      const req = wholeRequest({ 'content-type': type, 'content-encoding': 'gzip' }, NAMING)
      assertUnread(await judge(req), req, type)
    }
  })

  it('is one that does not begin as JSON, of any other type', async () => {
    for (const type of [undefined, 'text/plain', 'application/xml', 'x-audio/wav', 'application/zipped'])
      for (const text of [
        'a {"file_id":"f"}',
        '"file_id"',
        '\u0000{',
        '   \r\n\t7',
        '\ufeff\ufeffa',
        ')]}',
      ]) {
        const req = typed(type, text)
        assertUnread(await judge(req), req, `${type}: ${text}`)
        assert.equal(String(await bytesOf(req)), text, 'it is sent as it came')
      }
  })

  it('is one that ends before anything of it comes', async () => {
    const ended = wholeRequest({})
    assertUnread(await judge(ended), ended)
    for (const closesItself of [true, false]) {
      const req = sentRequest({ 'content-length': '10' }, closesItself)
      const judged = judge(req)
      await new Promise(setImmediate)
      req.end()
      assertUnread(await judged, req)
    }
  })

  it('is listened to no longer than until it is known', async () => {
    const req = sentRequest({ 'transfer-encoding': 'chunked' })
    const leaving = new AbortController()
    const judged = judge(req, leaving.signal)
    await new Promise(setImmediate)
    req.write('plain')
    assertUnread(await judged, req)
    for (const event of ['readable', 'close', 'error']) assert.equal(req.listenerCount(event), 0, event)
    assert.deepEqual(getEventListeners(leaving.signal, 'abort'), [])
  })
})

describe('a body that is read as JSON', () => {
  it('is one that says so, or begins so, in whatever pieces it comes', async () => {
    const spaces = ' '.repeat(5000)
    const texts = [NAMING, ` \r\n\t${NAMING}`, `\ufeff${NAMING}`, `${spaces}${NAMING}`, `[${NAMING}]`]
    for (const type of [
      ...['application/json', 'APPLICATION/JSON; charset=utf-8', 'text/json', 'application/vnd.api+json'],
      ...[
        'text/plain',
        undefined,
        'application/x-ndjson',
        'ximage/png',
        'application/zipped',
        'application/pdfs',
        'x-multipart/mixed',
      ],
    ])
      for (const text of texts)
        for (const pieces of [[text], [text.slice(0, 1), text.slice(1)], [...text].slice(0, 40)]) {
          if (pieces.join('') !== text) continue
          const judged = await judge(typed(type, ...pieces))
          const named = text.startsWith('[') ? [['file', 'f', 'items[0].file_id']] : NAMED
          assert.deepEqual(namedIn(judged), named, `${type}: ${text.slice(0, 20)}`)
          assert.deepEqual(judged.json, text.startsWith('[') ? undefined : JSON.parse(NAMING))
          assert.equal(judged.bytes, Buffer.byteLength(text))
          assert.equal(judged.watch, undefined)
          assert.equal(String(await bytesOf(judged.source as SentRequest)), text, 'it is sent as it came')
        }
  })

  it('may be no object, and then has no members, and may have items', async () => {
    for (const text of ['"text"', '7', 'null', '[]', 'true']) {
      const judged = await judge(typed('application/json', text))
      assert.deepEqual([namedIn(judged), judged.json], [[], undefined], text)
    }
    const items = await judge(typed('application/json', '[{"id":"item_1"}]'))
    assert.deepEqual(namedIn(items), [['item', 'item_1', 'items[0]']])
  })

  it('is refused where it cannot be read, by the member where one is at fault', async () => {
    for (const [text, param] of [
      ['', undefined],
      ['{"a":', undefined],
      ['\ufeff\ufeff{}', undefined],
      ['{"a":1,"a":2}', 'a'],
      ['{"a":NaN}', undefined],
      [Buffer.from([0xef, 0x7b, 0x7d]), undefined],
      [Buffer.from([0xef, 0xbb, 0x7b, 0x7d]), undefined],
      [Buffer.from([0xef, 0xbb, 0xbc, 0x7b, 0x7d]), undefined],
      [Buffer.from([0xee, 0xbb, 0xbf, 0x7b, 0x7d]), undefined],
      [Buffer.from([0xef, 0xba, 0xbf, 0x7b, 0x7d]), undefined],
    ] as const) {
      const error = await refusalOf(typed('application/json', ...(text === '' ? [] : [text])))
      assert.deepEqual([error.code, error.param], ['invalid_request', param], String(text))
      assert.notEqual(error.message, '')
    }
  })

  it('is refused where its type says so, in whatever letters, and it does not begin so', async () => {
    for (const type of [
      ...['application/json', 'Application/JSON;charset=utf-8', 'TEXT/JSON', 'application/vnd.api+Json'],
      ...['x.y-z/json', 'a+b/c.d-e+f+json'],
    ]) {
      const { code } = await refusalOf(typed(type, `say ${NAMING}`))
      assert.equal(code, 'invalid_request', type)
    }
    for (const type of ['application/jsonl', 'application/x-json-lines', 'json', 'text/json5']) {
      const req = typed(type, `say ${NAMING}`)
      assertUnread(await judge(req), req, type)
    }
  })

  it('is refused where it is too large, or compressed', async () => {
    assert.equal(
      (await refusalOf(typed('application/json', `"${'x'.repeat(LIMIT)}"`))).code,
      'request_too_large',
    )
    for (const type of ['application/json', 'text/plain', 'multipart/form-data; boundary=b']) {
      for (const coding of ['gzip', 'br', 'identity, gzip', '']) {
        const { code, param } = await refusalOf(
          wholeRequest({ 'content-type': type, 'content-encoding': coding }, NAMING),
        )
        assert.deepEqual([code, param], ['invalid_request', 'Content-Encoding'], coding)
      }
    }
    const plain = wholeRequest({ 'content-encoding': 'Identity' }, NAMING)
    assert.deepEqual(namedIn(await judge(plain)), NAMED)
  })
})

describe('a body whose caller leaves, or whose call must end', () => {
  it('is judged no further, whether anything came or not', async () => {
    for (const type of ['text/plain', 'application/json'])
      for (const begun of ['', '{']) {
        const reason = new GatewayError('key_disabled')
        const leaving = new AbortController()
        const req = sentRequest({ 'content-type': type, 'transfer-encoding': 'chunked' })
        if (begun) req.write(begun)
        const refused = refusalOf(req, leaving.signal)
        await new Promise(setImmediate)
        leaving.abort(reason)
        assert.equal(await refused, reason)
        for (const event of ['data', 'readable', 'error']) assert.equal(req.listenerCount(event), 0, event)
      }
  })

  it('passes unread where the connection has closed: nothing of it will come', async () => {
    const req = sentRequest({ 'content-type': 'text/plain', 'transfer-encoding': 'chunked' })
    const judged = judge(req)
    await new Promise(setImmediate)
    req.destroy()
    assertUnread(await judged, req)
  })

  it('is none of a connection that breaks', async () => {
    const cause = new Error('reset')
    const req = sentRequest({ 'content-type': 'text/plain', 'transfer-encoding': 'chunked' })
    const refused = refusalOf(req)
    await new Promise(setImmediate)
    req.destroy(cause)
    const error = await refused
    assert.deepEqual([error.code, error.cause], ['client_closed_request', cause])
  })
})
