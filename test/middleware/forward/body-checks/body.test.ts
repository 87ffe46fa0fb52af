import assert from 'node:assert/strict'
import { getEventListeners } from 'node:events'
import { describe, it } from 'node:test'
import { GatewayError } from '../../../../lib/core/errors/index.ts'
import { bytesOf } from '../../../support/byte-upstream.ts'
import {
  assertUnread,
  check,
  LIMIT,
  NAMED,
  NAMING,
  namedIn,
  refusalOf,
  type SentRequest,
  sentRequest,
  typed,
  wholeRequest,
} from '../support/sent-body.ts'

describe('a body that passes unread', () => {
  it('is none, whatever its type says', async () => {
    for (const type of ['application/json', 'multipart/form-data', 'text/plain', ''])
      for (const length of [{}, { 'content-length': '0' }]) {
        const req = sentRequest({ 'content-type': type, 'content-encoding': 'gzip', ...length })
        assertUnread(await check(req), req, type)
      }
  })

  it('is of a type that is neither JSON nor a form, where the path takes raw bytes', async () => {
    for (const type of [
      ...['audio/wav', 'audio/L16;rate=16000; channels=1', 'font/woff2', 'image/png', 'VIDEO/MP4'],
      ...['application/octet-stream', 'application/sdp', 'text/plain', 'text/plain;charset=UTF-8'],
    ])
      for (const text of ['a {"file_id":"f"}', '"file_id"', '   \r\n\t7', '\0\0\0\0{', '\u00ff\u00fb[']) {
        const bytes = Buffer.from(text, 'latin1')
        const req = typed(type, bytes)
        assertUnread(await check(req, { takesRaw: true }), req, `${type}: ${text}`)
        assert.deepEqual(await bytesOf(req), bytes, 'it is sent as it came')
        const { code, param } = await refusalOf(typed(type, bytes))
        assert.deepEqual([code, param], ['invalid_request', 'Content-Type'], 'elsewhere it is refused')
      }
  })

  it('is none without a type, or of a type that may be a form, wherever it is sent', async () => {
    for (const [type, text] of [
      [undefined, 'model=m'],
      ['', 'bytes'],
      ['multipart/mixed; boundary=b', '--b\r\n\r\n{}\r\n--b--'],
      ['multipart/related; boundary=b', 'x'],
      ['text/plain; boundary=b', 'x'],
      ['audio/wav; x="multipart/form-data"', 'x'],
      ['application/x-url-encoded', 'model=m'],
      ['audio/wav, multipart/form-data; boundary=b', 'x'],
      ['audio', 'x'],
      ['audio/wav; charset=utf-16', 'x'],
      ["audio/wav; charset*=utf-8''utf-7", 'x'],
      ['audio/wav', '--b\r\ncontent-disposition: form-data; name="model"'],
      ['audio/wav', ' \r\n--b\r\n'],
    ] as const)
      assert.equal((await refusalOf(typed(type, text), { takesRaw: true })).code, 'invalid_request', type)
  })

  it('is one that ends before anything of it comes', async () => {
    const ended = wholeRequest({})
    assertUnread(await check(ended), ended)
    for (const closesItself of [true, false]) {
      const req = sentRequest({ 'content-length': '10' }, closesItself)
      const checked = check(req)
      await new Promise(setImmediate)
      req.end()
      assertUnread(await checked, req)
    }
  })

  it('is listened to no longer than until it is known', async () => {
    const req = sentRequest({ 'content-type': 'audio/wav', 'transfer-encoding': 'chunked' })
    const leaving = new AbortController()
    const checked = check(req, { signal: leaving.signal, takesRaw: true })
    await new Promise(setImmediate)
    req.write('plain')
    assertUnread(await checked, req)
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
        'image/png',
        'application/octet-stream',
      ],
    ])
      for (const text of texts)
        for (const pieces of [[text], [text.slice(0, 1), text.slice(1)], [...text].slice(0, 40)]) {
          if (pieces.join('') !== text) continue
          const checked = await check(typed(type, ...pieces))
          const named = text.startsWith('[') ? [['file', 'f', 'items[0].file_id']] : NAMED
          assert.deepEqual(namedIn(checked), named, `${type}: ${text.slice(0, 20)}`)
          assert.deepEqual(checked.json, text.startsWith('[') ? undefined : JSON.parse(NAMING))
          assert.equal(checked.bytes, Buffer.byteLength(text))
          assert.equal(checked.watch, undefined)
          assert.equal(String(await bytesOf(checked.source as SentRequest)), text, 'it is sent as it came')
        }
  })

  it('may be one of an encoding that only some upstreams know, and is then refused', async () => {
    const utf16 = Buffer.from(NAMING, 'utf16le')
    for (const bytes of [
      utf16,
      Buffer.concat([Buffer.from([0xff, 0xfe]), utf16]),
      Buffer.concat([Buffer.from([0xfe, 0xff]), Buffer.from(utf16).swap16()]),
      Buffer.from([...NAMING].map((letter) => `\0\0\0${letter}`).join('')),
      `/* a comment */ ${NAMING}`,
      `// a comment\n${NAMING}`,
      `${NAMING}\n${NAMING}`,
    ])
      for (const type of ['audio/wav', 'application/octet-stream', undefined, 'application/json'])
        assert.equal((await refusalOf(typed(type, bytes), { takesRaw: true })).code, 'invalid_request', type)
    for (const charset of ['utf-16', 'utf-7', 'iso-8859-1', '"shift_jis"', 'utf-8; charset=utf-7'])
      assert.equal(
        (await refusalOf(typed(`application/json; charset=${charset}`, NAMING))).param,
        'Content-Type',
      )
  })

  it('without a type is checked as a form, too', async () => {
    for (const type of [undefined, 'application/x-www-form-urlencoded']) {
      const { code } = await refusalOf(typed(type, '{"input":"a&file_id=f&b"}'))
      assert.equal(code, 'unsupported_feature')
      assert.deepEqual(namedIn(await check(typed(type, NAMING))), NAMED)
    }
    assert.deepEqual(namedIn(await check(typed('text/plain', '{"input":"a&file_id=f&b"}'))), [])
  })

  it('may be no object, and then has no members, and may have items', async () => {
    for (const text of ['7', 'null', '[]', 'true']) {
      const checked = await check(typed('application/json', text))
      assert.deepEqual([namedIn(checked), checked.json], [[], undefined], text)
    }
    const items = await check(typed('application/json', '[{"id":"item_1"}]'))
    assert.deepEqual(namedIn(items), [['item', 'item_1', 'items[0]']])
  })

  it('is refused where it cannot be read, by the member where one is at fault', async () => {
    for (const [text, param] of [
      ['', undefined],
      ['"text"', undefined],
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
    for (const type of ['application/jsonl', 'application/x-json-lines', 'json', 'text/json5'])
      assert.equal(
        (await refusalOf(typed(type, `say ${NAMING}`), { takesRaw: true })).code,
        'invalid_request',
      )
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
    assert.deepEqual(namedIn(await check(plain)), NAMED)
  })
})

describe('a body whose caller leaves, or whose call must end', () => {
  it('is checked no further, whether anything came or not', async () => {
    for (const type of ['text/plain', 'application/json'])
      for (const begun of ['', '{']) {
        const reason = new GatewayError('key_disabled')
        const leaving = new AbortController()
        const req = sentRequest({ 'content-type': type, 'transfer-encoding': 'chunked' })
        if (begun) req.write(begun)
        const refused = refusalOf(req, { signal: leaving.signal })
        await new Promise(setImmediate)
        leaving.abort(reason)
        assert.equal(await refused, reason)
        for (const event of ['data', 'readable', 'error']) assert.equal(req.listenerCount(event), 0, event)
      }
  })

  it('passes unread where the connection has closed: nothing of it will come', async () => {
    const req = sentRequest({ 'content-type': 'text/plain', 'transfer-encoding': 'chunked' })
    const checked = check(req)
    await new Promise(setImmediate)
    req.destroy()
    assertUnread(await checked, req)
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

describe('a form', () => {
  it('passes as a stream whose names are checked', async () => {
    for (const type of [
      'multipart/form-data; boundary=b',
      'MULTIPART/FORM-DATA;boundary="b"',
      'multipart/form-data \t; charset=utf-8\t ;\tboundary=b ; charset=utf-8 ; ',
    ]) {
      const req = typed(type, '--b\r\n')
      const checked = await check(req)
      assert.deepEqual([checked.source, namedIn(checked), checked.bytes], [req, [], 0], type)
      const part = (name: string) =>
        Buffer.from(`--b\r\nContent-Disposition: form-data; name="${name}"\r\n\r\nx\r\n`)
      checked.watch?.(part('purpose'))
      assert.throws(() => checked.watch?.(part('file_id')), { code: 'unsupported_feature' }, type)
    }
  })

  it('needs a boundary that everybody reads alike', async () => {
    for (const type of [
      'multipart/form-data',
      'multipart/form-data; boundary=',
      'multipart/form-data; boundary=""',
      'multipart/form-datax; boundary=b',
      'multipart/form-data, multipart/form-data; boundary=b',
      'multipart/form-data; boundary=b c',
      'multipart/form-data; boundary=b; x=y',
      'multipart/form-data; boundary=b x',
      `multipart/form-data; boundary="${'b'.repeat(201)}"`,
    ]) {
      const { code, message } = await refusalOf(typed(type, NAMING))
      assert.equal(code, 'invalid_request', type)
      assert.match(message, /boundary of the form/)
    }
    const boundary = 'b'.repeat(200)
    const longest = await check(typed(`multipart/form-data; boundary=${boundary}`, `--${boundary}\r\n`))
    assert.notEqual(longest.watch, undefined)
  })

  it('that is encoded as a URL is read whole, and names nothing', async () => {
    for (const type of [
      'application/x-www-form-urlencoded',
      'Application/X-WWW-Form-URLEncoded; charset=utf-8',
    ]) {
      const text = 'a=b&c=file_id;d=e&f[g][]={big}; %7B'
      const checked = await check(typed(type, text))
      assert.deepEqual([namedIn(checked), checked.json, checked.bytes], [[], undefined, text.length])
      assert.equal(String(await bytesOf(checked.source as SentRequest)), text)
      for (const naming of [
        'file_id=f',
        'a=b&file_ids[]=f',
        'a=b;file_id=f',
        'a=b;file%5Fid',
        'a=b;c=d;thread[id]=t',
      ]) {
        const { code, param } = await refusalOf(typed(type, naming))
        assert.equal(code, 'unsupported_feature', naming)
        assert.match(param ?? '', /id/)
      }
    }
    for (const [type, text] of [
      ['x-application/x-www-form-urlencoded', 'file_id=f'],
      ['application/x-www-form-urlencoded', 'a=%zz'],
      ['application/x-www-form-urlencoded', 'a=%u0061'],
      ['application/x-www-form-urlencoded', 'a=%ff'],
      ['application/x-www-form-urlencoded', 'mod%00=m'],
      ['application/x-www-form-urlencoded', 'a=b& c=d'],
      ['application/x-www-form-urlencoded', 'a=%7B"file_id":"f"%7D,'],
      ['application/x-www-form-urlencoded; charset=utf-16', 'a=b'],
    ] as const)
      assert.equal((await refusalOf(typed(type, text))).code, 'invalid_request', text)
  })

  it('of a small size is checked before it is sent', async () => {
    const part = (name: string, value = 'x') =>
      `--b\r\nContent-Disposition: form-data; name="${name}"\r\n\r\n${value}\r\n`
    const sent = (text: string) =>
      wholeRequest(
        { 'content-type': 'multipart/form-data; boundary=b', 'content-length': String(text.length) },
        text,
      )
    const text = `${part('purpose')}--b--\r\n`
    const checked = await check(sent(text))
    assert.deepEqual([checked.watch, checked.bytes], [undefined, text.length])
    assert.equal(String(await bytesOf(checked.source as SentRequest)), text)
    assert.equal((await refusalOf(sent(part('purpose')))).code, 'invalid_request')
    const { code } = await refusalOf(sent(`${part('purpose')}${part('thread_id')}--b--`))
    assert.equal(code, 'unsupported_feature')
    const long = await check(sent(`${part('purpose', 'x'.repeat(70_000))}--b--`))
    assert.notEqual(long.watch, undefined)
  })
})
