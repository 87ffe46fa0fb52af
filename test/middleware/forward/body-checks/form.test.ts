import assert from 'node:assert/strict'
import { Buffer } from 'node:buffer'
import { parse as parseQuery } from 'node:querystring'
import { describe, it, type TestContext } from 'node:test'
import { gzipSync } from 'node:zlib'
import { Busboy } from '@fastify/busboy'
import fc from 'fast-check'
import { GatewayError } from '../../../../lib/core/errors/index.ts'
import { StrictForm } from '../../../../lib/middleware/forward/body-checks/form.ts'
import { UpstreamResources } from '../../../../lib/middleware/references/index.ts'
import { bytesOf, byteUpstream } from '../../../support/byte-upstream.ts'
import { forwardGateway, OTHER_KEY } from '../../../support/forward-gateway.ts'
import { KEY } from '../../../support/gateway.ts'
import { storeOf } from '../../../support/reference-rows.ts'

describe('a form that passes by', () => {
  const BOUNDARY = 'a-b.1'
  const MAX_HEAD_BYTES = 16 * 1024

  function form(...parts: readonly (readonly [head: string, body: string])[]): string {
    const each = parts.map(([head, body]) => `--${BOUNDARY}\r\n${head}\r\n\r\n${body}\r\n`)
    return `${each.join('')}--${BOUNDARY}--\r\n`
  }
  const named = (name: string, more = '') => `content-disposition: form-data; name="${name}"${more}`

  function checkModel(name: string): void {
    if (!['', 'm'].includes(name)) throw new GatewayError('model_not_allowed')
  }

  /** Why a form does not pass that comes in these pieces; undefined if it does. */
  function refusalOf(...pieces: readonly (string | Buffer)[]): string | undefined {
    const form = new StrictForm(BOUNDARY, { ownedOnly: true, checkModel })
    try {
      for (const piece of pieces) form.read(Buffer.from(piece as string, 'latin1'))
      form.end()
      return undefined
    } catch (error) {
      const { code, param } = error as GatewayError
      return param ? `${code} ${param}` : code
    }
  }

  const FILE = 'unsupported_feature file_id'
  const UNREADABLE = 'invalid_request'
  const MODEL = 'model_not_allowed'

  const rows: [what: string, text: string, refusal: string | undefined][] = [
    ['plain fields', form([named('model'), 'm'], [named('prompt'), 'p']), undefined],
    ['a file', form([named('image', '; filename="a.png"'), 'bytes']), undefined],
    ['a field that names a file', form([named('file_id'), 'f']), FILE],
    ['such a field behind others', form([named('model'), 'm'], [named('file_id'), 'f']), FILE],
    ['a list of them', form([named('file_ids[]'), 'f']), 'unsupported_feature file_ids[]'],
    [
      'the settings of a session',
      form([named('sdp'), 'v=0'], [named('session'), '{"model":"m"}']),
      undefined,
    ],
    ['such a file', form([named('session', '; filename="s.json"'), '{"type":"realtime"}']), undefined],
    ['a model of a session', form([named('session'), '{"model":"big"}']), MODEL],
    [
      'a prompt of a session',
      form([named('session'), '{"prompt":{"id":"p"}}']),
      'unsupported_feature session',
    ],
    ['an id in a session', form([named('session'), '{"id":"s"}']), 'unsupported_feature session'],
    ['a stored session', form([named('session'), 's']), `${UNREADABLE} session`],
    ['a stored session as JSON', form([named('session'), '"s"']), 'unsupported_feature session'],
    ['stored sessions as JSON', form([named('session'), '["s"]']), 'unsupported_feature session'],
    ['a stored session in a file', form([named('session', '; filename="s"'), 's']), `${UNREADABLE} session`],
    ['a place in a list of files', form([named('file_ids[0]'), 'f']), 'unsupported_feature file_ids[0]'],
    ['a place in a list of sessions', form([named('session[0]'), 's']), 'unsupported_feature session[0]'],
    ['an id in such a list', form([named('session[0][id]'), 's']), 'unsupported_feature session[0][id]'],
    ['the group of a trace', form([named('session'), '{"tracing":{"group_id":"g"}}']), undefined],
    ['a session in another case', form([named('Session'), '{}']), 'unsupported_feature Session'],
    ['a name without quotes', form(['content-disposition: form-data; name=file_id', 'f']), FILE],
    ['a name in another case', form(['Content-Disposition: form-data; NAME = "file_id"', 'f']), FILE],
    ['a name with an escape', form([named('file\\_id'), 'f']), `${UNREADABLE} file\\_id`],
    ['a name in percent', form([named('mod%65l'), 'big']), `${UNREADABLE} mod%65l`],
    ['a name with a space', form([named('model '), 'big']), `${UNREADABLE} model `],
    ['a name that is none', form([named(''), 'f']), UNREADABLE],
    ['the charset of all fields', form([named('_charset_'), 'utf-7']), `${UNREADABLE} _charset_`],
    ['a second name', form([named('prompt', '; name="file_id"'), 'f']), UNREADABLE],
    [
      'a second name within that of a file',
      form([named('file', '; filename="a; name=file_id"'), 'f']),
      UNREADABLE,
    ],
    ['a quote with an escape', form([named('file', '; filename="a\\"; name="model"'), 'f']), UNREADABLE],
    ['the name of a file with a backslash', form([named('file', '; filename="c:\\a.png"'), 'f']), undefined],
    [
      'the name of a file, encoded',
      form([named('file', "; filename=a; filename*=utf-8''%C3%A4"), 'f']),
      undefined,
    ],
    [
      'the name of a file in another encoding',
      form([named('file', "; filename*=utf-7''a"), 'f']),
      UNREADABLE,
    ],
    ['another parameter', form([named('file', '; size=3'), 'f']), UNREADABLE],
    ['an encoded name', form(["content-disposition: form-data; name*=UTF-8''model", 'f']), UNREADABLE],
    [
      'a name in pieces',
      form(['content-disposition: form-data; name*0="file"; name*1="_id"', 'f']),
      UNREADABLE,
    ],
    ['a comment', form(['content-disposition: form-data; (a) name="prompt"', 'f']), UNREADABLE],
    ['another disposition', form(['content-disposition: attachment; name="model"', 'f']), UNREADABLE],
    ['no disposition', form(['content-type: text/plain', 'f']), UNREADABLE],
    ['no head', `--${BOUNDARY}\r\n\r\nf\r\n--${BOUNDARY}--\r\n`, UNREADABLE],
    ['a second disposition', form([`${named('prompt')}\r\n${named('model')}`, 'f']), UNREADABLE],
    ['a folded line', form(['content-disposition: form-data;\r\n name="model"', 'f']), UNREADABLE],
    ['another line', form([`${named('prompt')}\r\nx-a: b`, 'f']), UNREADABLE],
    ['a line without a name', form([`${named('prompt')}\r\nb`, 'f']), UNREADABLE],
    ['a space before a colon', form(['content-disposition : form-data; name="model"', 'f']), UNREADABLE],
    ['a line end of another system', form([`${named('prompt')}\n${named('model')}`, 'f']), UNREADABLE],
    ['an empty byte', form([named('prompt\0'), 'f']), UNREADABLE],
    ['an encoding', form([`${named('model')}\r\ncontent-transfer-encoding: base64`, 'bQ==']), UNREADABLE],
    ['no encoding', form([`${named('model')}\r\ncontent-transfer-encoding: 8BIT`, 'm']), undefined],
    ['a right length', form([`${named('model')}\r\ncontent-length: 1`, 'm']), undefined],
    ['a wrong length', form([`${named('model')}\r\ncontent-length: 2`, 'm']), UNREADABLE],
    [
      'a form in a form',
      form([`${named('file')}\r\ncontent-type: multipart/mixed; boundary=c`, 'f']),
      UNREADABLE,
    ],
    ['a charset', form([`${named('model')}\r\ncontent-type: text/plain; charset=utf-7`, 'f']), UNREADABLE],
    [
      'the usual charset',
      form([`${named('model')}\r\ncontent-type: text/plain; charset="UTF-8"`, 'm']),
      undefined,
    ],
    ['a model', form([named('model'), 'm'], [named('model'), 'big']), MODEL],
    ['a model in a file', form([named('model', '; filename="m"'), 'big']), MODEL],
    ['a model that begins with spaces', form([named('model'), `${' '.repeat(500)}m`]), MODEL],
    ['JSON', form([`${named('settings')}\r\ncontent-type: application/json`, '{}']), undefined],
    [
      'JSON that names a model',
      form([`${named('settings')}\r\ncontent-type: application/json`, '{"model":"big"}']),
      MODEL,
    ],
    ['such JSON that says nothing', form([named('settings'), ' {"a":{"model":"big"}}']), MODEL],
    ['such JSON behind spaces', form([named('settings'), `${' '.repeat(9000)}[{"model":"big"}]`]), MODEL],
    ['such JSON in a file', form([named('settings', '; filename="a"'), '{"model":"big"}']), MODEL],
    ['JSON that names a file', form([named('input'), '[{"file_id":"f"}]']), 'unsupported_feature input'],
    ['JSON in a field of text', form([named('text'), '{"file_id":"f"}']), 'unsupported_feature text'],
    ['JSON that has an id', form([named('conversation'), '{"id":"c"}']), 'unsupported_feature conversation'],
    ['JSON with a comment', form([named('settings'), '{/**/"model":"big"}']), `${UNREADABLE} settings`],
    ['JSON that stands twice', form([named('s'), '{"model":"m","model":"big"}']), `${UNREADABLE} s`],
    ['JSON in another encoding', form([named('s', '; filename="a"'), '{\0"\0m\0"\0']), `${UNREADABLE} s`],
    ["JSON of the caller's own", form([named('metadata'), '{"model":"big","file_id":"f"}']), undefined],
    [
      'a text that begins like JSON',
      form([named('prompt'), '{big} [model] "big"'], [named('p'), '[1] a']),
      undefined,
    ],
    [
      'a file of JSON',
      form([`${named('file', '; FileName="a.json"')}\r\nContent-Type: Application/JSON`, '{"model":']),
      undefined,
    ],
    [
      'what looks like a head in a body',
      form([named('prompt'), `\r\n\r\n${named('file_id')}\r\n\r\n`]),
      undefined,
    ],
    ['an empty value', form([named('prompt'), '']), undefined],
    ['no value', `--${BOUNDARY}\r\n${named('prompt')}\r\n\r\n--${BOUNDARY}--\r\n`, UNREADABLE],
    ['no line end at its end', form([named('prompt'), 'p']).slice(0, -2), undefined],
    ['no end', form([named('prompt'), 'p']).slice(0, -4), UNREADABLE],
    ['nothing', '', UNREADABLE],
    ['no part', `--${BOUNDARY}--\r\n`, undefined],
    ['a field behind its end', `${form([named('model'), 'm'])}${form([named('file_id'), 'f'])}`, UNREADABLE],
    ['a text behind its end', `${form([named('model'), 'm'])}the end`, UNREADABLE],
    ['a line end before its begin', `\r\n${form([named('model'), 'm'])}`, UNREADABLE],
    ['a text before its begin', `text\r\n${form([named('model'), 'm'])}`, UNREADABLE],
    ['line ends of another system', form([named('prompt'), 'p']).replaceAll('\r\n', '\n'), UNREADABLE],
    ['line ends of an old system', form([named('prompt'), 'p']).replaceAll('\r\n', '\r'), UNREADABLE],
    ['a boundary in a line', form([named('prompt'), `see --${BOUNDARY}-- below`]), UNREADABLE],
    [
      'a boundary that begins a line of another system',
      form([named('prompt'), `\n--${BOUNDARY}\n${named('model')}\n\nbig`]),
      UNREADABLE,
    ],
    [
      'spaces behind a boundary',
      form([named('prompt'), 'p']).replace(`${BOUNDARY}\r`, `${BOUNDARY} \r`),
      UNREADABLE,
    ],
    ['a longer boundary', form([named('prompt'), `\r\n--${BOUNDARY}x\r\n`]), UNREADABLE],
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

  it('is refused for a head that is too long to be read, and let through with a long one', () => {
    const fileName = (length: number) => named('file', `; filename="${'x'.repeat(length)}"`)
    assert.equal(refusalOf(form([fileName(MAX_HEAD_BYTES - 100), 'f'])), undefined)
    assert.equal(refusalOf(form([fileName(MAX_HEAD_BYTES), 'f'])), UNREADABLE)
    assert.equal(
      refusalOf(`--${BOUNDARY}\r\n`, 'x'.repeat(MAX_HEAD_BYTES + 10)),
      UNREADABLE,
      'without its end',
    )
  })

  it('keeps nothing of the pieces that it was given', () => {
    const read = new StrictForm(BOUNDARY, { ownedOnly: true })
    const piece = Buffer.from(`--${BOUNDARY}\r\n${named('file_')}`.slice(0, -1))
    read.read(piece)
    piece.fill('x')
    assert.throws(() => read.read(Buffer.from('id"\r\n\r\n')), { code: 'unsupported_feature' })
  })

  it('is refused for JSON that is too long to be read', () => {
    assert.equal(refusalOf(form([named('s'), `[{"a":"${'x'.repeat(300_000)}"}]`])), UNREADABLE)
    assert.equal(refusalOf(form([named('prompt'), 'x'.repeat(300_000)])), undefined)
  })

  it('names the beginning of a long name only', () => {
    const name = `${'x'.repeat(300)}_file_id`
    assert.equal(refusalOf(form([named(name), 'f'])), `${UNREADABLE} ${'x'.repeat(200)}`)
  })
})

describe('a body that upstreams could read in different ways', () => {
  const MULTIPART = 'multipart/form-data; boundary=b'
  const ENCODED = 'application/x-www-form-urlencoded'
  const JSON_TYPE = 'application/json'

  /** A key with `allowModels`, and one of another account without; and what each must not reach. */
  const TENANTS = [
    { key: KEY, models: ['voice', 'up-voice'], foreign: 'foreign' },
    { key: OTHER_KEY, models: undefined, foreign: 'own-0' },
  ] as const

  async function gatewayWith(t: TestContext, rule: object = {}) {
    const whole: { type: string; body: Buffer }[] = []
    const upstream = await byteUpstream(t, async (req, res) => {
      const body = await bytesOf(req).catch(() => undefined)
      if (body) whole.push({ type: req.headers['content-type'] ?? '', body })
      res.end('{}')
    })
    const resources = new UpstreamResources({ store: await storeOf(['file']) })
    t.after(() => resources.close())
    const gateway = await forwardGateway(t, {
      lines: [{ url: upstream.url, models: { voice: 'up-voice' } }],
      rules: ['/v1/odd', '/v1/audio/transcriptions'].map((path) => ({ path, lines: ['line-0'], ...rule })),
      key: { allowModels: ['voice'] },
      resources,
    })
    const send = async (
      type: string | undefined,
      body: string | Buffer,
      { path = '/v1/odd', key = KEY, headers = {} as Record<string, string> } = {},
    ) => {
      const answer = await gateway.ask(path, {
        method: 'POST',
        body: Buffer.from(body as string),
        headers: {
          authorization: `Bearer ${key}`,
          ...(type !== undefined && { 'content-type': type }),
          ...headers,
        },
      })
      const { error } = (await answer.json()) as { error?: { code: string } }
      return { status: answer.status, code: error?.code }
    }
    return { send, whole, requests: upstream.requests }
  }

  const field = (head: string, value: string) =>
    `--b\r\ncontent-disposition: form-data; ${head}\r\n\r\n${value}\r\n`
  const form = (...parts: string[]) => `${parts.join('')}--b--\r\n`
  const BIG = '{"model":"big"}'
  const utf16 = (text: string) => Buffer.from(text, 'utf16le')

  const REFUSED: readonly (readonly [what: string, type: string | undefined, body: string | Buffer])[] = [
    ['a form whose lines end in LF', MULTIPART, form(field('name="model"', 'big')).replaceAll('\r', '')],
    ['a form whose lines end in CR', MULTIPART, form(field('name="model"', 'big')).replaceAll('\n', '')],
    [
      'a form with LF in a head',
      MULTIPART,
      form(field('name="a"\ncontent-disposition: form-data; name="model"', 'big')),
    ],
    ['JSON as an image', 'image/png', BIG],
    ['JSON as sound', 'audio/wav', BIG],
    ['JSON as bytes', 'application/octet-stream', ` \n${BIG}`],
    ['JSON as text', 'text/plain', BIG],
    ['JSON of another type', 'text/json', BIG],
    ['JSON of a vendor', 'application/vnd.x+json; charset=utf-8', BIG],
    ['JSON of no type', undefined, BIG],
    ['JSON of a type that is none', 'json', BIG],
    ['JSON as a form', ENCODED, BIG],
    ['JSON as a form of parts', MULTIPART, BIG],
    ['JSON as other parts', 'multipart/mixed; boundary=b', BIG],
    ['JSON of two types', `${JSON_TYPE}, image/png`, BIG],
    ['JSON in UTF-16', 'image/png', utf16(BIG)],
    ['JSON in UTF-16 with its mark', 'application/octet-stream', utf16(`\ufeff${BIG}`)],
    ['JSON in UTF-7', 'application/json; charset=utf-7', '{"a":"+ACIALAAi-model+ACIAOgAi-big"}'],
    ['JSON behind a mark', 'image/png', `\ufeff${BIG}`],
    ['JSON behind a comment', 'image/png', `/**/${BIG}`],
    ['JSON in lines', 'application/x-ndjson', `{}\n${BIG}`],
    ['JSON with a member twice', JSON_TYPE, '{"model":"voice","model":"big"}'],
    ['JSON with an escape', 'image/png', '{"mod\\u0065l":"big"}'],
    ['JSON with a long s', JSON_TYPE, '{"model\u017f":["big"]}'],
    ['a form as an image', 'image/png', form(field('name="model"', 'big'))],
    ['a form as related parts', 'multipart/related; boundary=b', form(field('name="model"', 'big'))],
    ['an encoded form as text', 'text/plain', 'model=big'],
    ['an encoded form of no type', undefined, 'model=big'],
    ['an encoded form with escapes', ENCODED, 'mod%65l=big'],
    ['an encoded form with lists', ENCODED, 'model[]=big'],
    ['an encoded form with a plus', ENCODED, 'a=b&+model=big'],
    ['an encoded form with an empty byte', ENCODED, 'model%00=big'],
    ['a second field', ENCODED, 'model=voice&model=big'],
    ['JSON in a field', ENCODED, `settings=${encodeURIComponent(BIG)}`],
    ['JSON in a part', MULTIPART, form(field('name="settings"', BIG))],
    ['a second part', MULTIPART, form(field('name="model"', 'voice'), field('name="model"', 'big'))],
    ['an extended name', MULTIPART, form(field("name*=utf-8''model", 'big'))],
    ['a name behind that of a file', MULTIPART, form(field('filename="a\\"; name="model"', 'big'))],
    ['a preamble', MULTIPART, `a\r\n${form(field('name="model"', 'big'))}`],
    ['an epilogue', MULTIPART, `${form()}${form(field('name="model"', 'big'))}`],
    ['a folded head', MULTIPART, form(field('\r\n name="model"', 'big'))],
    [
      'parts in a part',
      MULTIPART,
      form(field('name="a"\r\ncontent-type: multipart/mixed; boundary=c', '--c')),
    ],
    [
      'an encoded part',
      MULTIPART,
      form(field('name="model"\r\ncontent-transfer-encoding: base64', 'YmlnCg==')),
    ],
    ['another boundary', 'multipart/form-data; boundary=c', form(field('name="model"', 'big'))],
    ['a boundary of two', 'multipart/form-data; boundary=c; boundary=b', form(field('name="model"', 'big'))],
    ['JSON with a field of a form behind a semicolon', ENCODED, '{"text":"&;model=big&"}'],
    ['the same without a type', undefined, '{"text":"&;model=big&"}'],
    ['JSON in a string', JSON_TYPE, JSON.stringify(BIG)],
    ['a model with an empty id', JSON_TYPE, '{"model":{"id":"","name":"big"}}'],
    ['a model with another id', JSON_TYPE, '{"model":{"id":"voice","name":"big"}}'],
    ['a model with an id that is no text', JSON_TYPE, '{"model":{"id":1,"name":"big"}}'],
    ['models in a list of lists', JSON_TYPE, '{"models":[["big"]]}'],
    ['bytes of their own', 'image/png', Buffer.from([0x89, 0x50, 0x4e, 0x47, 0xd, 0xa, 0x1a, 0xa])],
  ]

  describe('a body that could reach what its key must not use', () => {
    it('reaches no line, for a key with `allowModels`', async (t) => {
      const { send, requests } = await gatewayWith(t)
      for (const [what, type, body] of REFUSED) {
        const { status, code } = await send(type, body)
        assert.ok([400, 403].includes(status), `${what}: ${status} ${code}`)
        assert.ok(['invalid_request', 'model_not_allowed'].includes(code ?? ''), `${what}: ${code}`)
      }
      for (const coding of ['gzip', 'br', 'deflate', 'gzip, gzip', 'x']) {
        const headers = { 'content-encoding': coding }
        assert.equal((await send(JSON_TYPE, gzipSync(BIG), { headers })).code, 'invalid_request')
        assert.equal((await send('audio/wav', gzipSync(BIG), { headers })).code, 'invalid_request')
      }
      assert.equal(requests.length, 0)
    })

    it('reaches no line with what another account owns, for a key without `allowModels`', async (t) => {
      const { send, requests, whole } = await gatewayWith(t)
      const naming = '{"file_id":"own-0"}'
      for (const type of [
        'image/png',
        'application/octet-stream',
        'text/plain',
        undefined,
        ENCODED,
        JSON_TYPE,
      ])
        assert.equal((await send(type, naming, { key: OTHER_KEY })).code, 'not_found', type)
      for (const body of [field('name="file_id"', 'own-0'), field('name="input"', `[${naming}]`)])
        for (const end of ['\r\n', '\n'])
          assert.equal(
            (await send(MULTIPART, form(body).replaceAll('\r\n', end), { key: OTHER_KEY })).status,
            400,
          )
      assert.equal((await send(ENCODED, 'file_id=own-0', { key: OTHER_KEY })).code, 'unsupported_feature')
      assert.equal(requests.length, 0)
      assert.equal((await send('image/png', naming)).status, 200, 'its own account may name it')
      assert.equal(String(whole[0]?.body), naming)
    })

    it('passes unread where the path or its rule takes raw bytes, and it is not JSON', async (t) => {
      const sound = Buffer.from('RIFF....WAVEfmt ')
      for (const [rule, path] of [
        [{}, '/v1/audio/transcriptions'],
        [{ raw: true }, '/v1/odd'],
      ] as const) {
        const { send, whole, requests } = await gatewayWith(t, rule)
        assert.equal((await send('audio/wav', sound, { path })).status, 200)
        assert.deepEqual(whole.pop()?.body, sound)
        requests.length = 0
        assert.equal((await send('audio/wav', BIG, { path })).code, 'model_not_allowed')
        assert.equal((await send(undefined, sound, { path })).code, 'invalid_request')
        for (const hidden of [
          form(field('name="model"', 'big')),
          'model=big',
          'a=%20&model=big',
          '&%6dodel=big',
          'model[id]=big',
          `\u3000${BIG}`,
          `\u00a0\u2028${BIG}`,
          `)]}'\n${BIG}`,
        ])
          assert.match(
            (await send('audio/wav', hidden, { path })).code ?? '',
            /^(invalid_request|model_not_allowed)$/,
          )
        assert.equal(requests.length, 0)
        const session = 'v=0\r\no=- 1 2 IN IP4 127.0.0.1\r\n'
        assert.equal((await send('application/sdp', session, { path })).status, 200)
        assert.equal(String(whole.pop()?.body), session)
      }
      const { send, requests } = await gatewayWith(t, { raw: false })
      assert.equal((await send('audio/wav', sound, { path: '/v1/audio/transcriptions' })).status, 400)
      assert.equal(requests.length, 0)
    })
  })

  /** The head of a part that every parser takes for a file, whose content none reads as members. */
  const IS_FILE = /^content-disposition: form-data; name="[^"\r\n]*"; filename(?:="a"|\*=utf-8''a)$/

  /** The fields and members that some parser reads out of a body. */
  async function fieldsReadOf(
    type: string,
    body: Buffer,
  ): Promise<(readonly [name: string, value: unknown])[]> {
    const read: (readonly [string, unknown])[] = []
    const walk = (json: unknown): void => {
      if (typeof json !== 'object' || json === null) return
      for (const [name, value] of Object.entries(json)) {
        // Brackets mean nothing in JSON.
        if (/^[\w-]+$/.test(name)) read.push([name, value])
        walk(value)
      }
    }
    for (const text of [body.toString(), body.toString('utf16le')]) {
      try {
        walk(JSON.parse(text.replace(/^\ufeff/, '').replaceAll(/(^|[{,:])\s*\/\*\*\//g, '$1')))
      } catch {
        // It is no JSON.
      }
    }
    const ofJson = read.length
    const files: typeof read = []
    if (type === '' || /urlencoded/i.test(type)) {
      read.push(...new URLSearchParams(body.toString()))
      // Some divide at semicolons, too.
      read.push(...Object.entries(parseQuery(body.toString().replaceAll(';', '&'))))
    }
    if (/multipart/i.test(type)) {
      const asForm = new Response(body, { headers: { 'content-type': type } }).formData()
      read.push(
        ...(await asForm.then(
          (form) => [...form],
          () => [],
        )),
      )
      await busboyFields(type, body, read)
      // As lenient parsers divide it: at any line end, with any head.
      for (const part of body.toString().split(/--b/)) {
        const [, head = '', value = ''] =
          /^[^\n\r]*[\r\n]+([\s\S]*?)(?:\r\n\r\n|\n\n|\r\r)([\s\S]*)$/.exec(part) ?? []
        const found = IS_FILE.test(head) ? files : read
        for (const [, name = ''] of head.matchAll(/\bname\*?=\s*(?:utf-8'')?"?([^";\s]*)/gi))
          found.push([decodeURIComponent(name.replaceAll('\\', '')), value.trim()])
      }
    }
    for (const [, value] of read.slice(ofJson)) {
      try {
        if (typeof value === 'string' && value.startsWith('{')) walk(JSON.parse(value))
      } catch {
        // It is no JSON.
      }
    }
    return [...read, ...files]
  }

  function busboyFields(type: string, body: Buffer, read: (readonly [string, unknown])[]): Promise<void> {
    return new Promise((resolve) => {
      try {
        const parser = new Busboy({ headers: { 'content-type': type } })
        parser
          .on('field', (name, value) => void read.push([name, value]))
          .on('file', (_name, file) => void file.on('error', () => {}).resume())
          .on('finish', resolve)
          .on('error', () => resolve())
        parser.end(body)
      } catch {
        resolve()
      }
    })
  }

  const MODEL_FIELD = /^\s*(?:[\w-]+\[)*models?\]?(?:\[\])?\0?\s*$/i
  const TYPES = [
    undefined,
    JSON_TYPE,
    ENCODED,
    MULTIPART,
    'image/png',
    'text/plain',
    'application/octet-stream',
  ]
  const PIECES = [
    '\r\n',
    '\n',
    '--b',
    '--',
    '"',
    '\\',
    '{',
    '}',
    ',',
    '&',
    ';',
    '=',
    '%',
    ' ',
    '\0',
    '/**/',
    '\ufeff',
  ]
  const NAMES = [
    'model',
    'mod\\u0065l',
    'mod%65l',
    'Model',
    'session[model]',
    'file_id',
    'file_ids[]',
    'text',
    'file',
  ]
  const VALUES = ['voice', 'big', 'own-0', 'foreign', BIG, '{"file_id":"foreign"}', 'a text; model=big', '']
  const someField = fc.record({ name: fc.constantFrom(...NAMES), value: fc.constantFrom(...VALUES) })
  const someBody = fc
    .record({
      fields: fc.array(someField, { minLength: 1, maxLength: 3 }),
      kind: fc.constantFrom('json', 'encoded', 'multipart'),
      end: fc.constantFrom('\r\n', '\r\n', '\n'),
      more: fc.constantFrom('', '', '; filename="a"', "; filename*=utf-8''a", '; name="model"', '\r\nx-a: b'),
    })
    .map(({ fields, kind, end, more }) => {
      if (kind === 'json')
        return `{${fields.map(({ name, value }) => `"${name}":${JSON.stringify(value)}`).join()}}`
      if (kind === 'encoded')
        return fields.map(({ name, value }) => `${name}=${encodeURIComponent(value)}`).join('&')
      return form(...fields.map(({ name, value }) => field(`name="${name}"${more}`, value))).replaceAll(
        '\r\n',
        end,
      )
    })
  const changes = fc.array(fc.record({ at: fc.nat(300), piece: fc.constantFrom(...PIECES) }), {
    maxLength: 2,
  })

  describe('a body of any form', () => {
    it('reaches a line only if no parser reads more out of it than its key may use', async (t) => {
      const { send, whole } = await gatewayWith(t, { raw: true })
      let passed = 0
      await fc.assert(
        fc.asyncProperty(
          fc.constantFrom(...TYPES),
          someBody,
          changes,
          fc.boolean(),
          fc.constantFrom(...TENANTS),
          async (type, text, edits, wide, { key, models, foreign }) => {
            let changed = text
            for (const { at, piece } of edits) changed = changed.slice(0, at) + piece + changed.slice(at)
            const body = wide && type === 'image/png' ? utf16(changed) : Buffer.from(changed)
            whole.length = 0
            const { status } = await send(type, body, { key })
            assert.equal(whole.length, status === 200 ? 1 : 0, `${status}`)
            for (const { type, body: sent } of whole) {
              passed++
              assert.deepEqual(sent, body, 'it is sent as it came')
              for (const [name, value] of await fieldsReadOf(type, sent)) {
                if (models && MODEL_FIELD.test(name) && typeof value === 'string')
                  assert.ok(['', ...models].includes(value), `${name}: ${value}`)
                if (/file_ids?(?![\w-])/i.test(name)) assert.notEqual(value, foreign)
              }
            }
          },
        ),
        { numRuns: 200 },
      )
      assert.ok(passed > 8, `only ${passed} bodies passed`)
    })
  })
})
