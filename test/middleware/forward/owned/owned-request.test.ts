import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { GatewayError } from '../../../../lib/core/errors/index.ts'
import { RefusedFiles } from '../../../../lib/middleware/forward/owned/batch-files.ts'
import { OwnList } from '../../../../lib/middleware/forward/owned/own-list.ts'
import { OwnedRequest, refuseForeignRows } from '../../../../lib/middleware/forward/owned/owned-request.ts'
import { UpstreamResources } from '../../../../lib/middleware/references/index.ts'
import { envelopeOf } from '../../../support/answer-bodies.ts'
import { byteUpstream } from '../../../support/byte-upstream.ts'
import { forwardGateway } from '../../../support/forward-gateway.ts'
import {
  AGENTS,
  CHATS,
  MESSAGES,
  NOT_OWN,
  RESPONSES,
  storeOf,
  twoUpstreams,
} from '../../../support/reference-rows.ts'
import { answerJson } from '../../../support/scripted-upstream.ts'
import { callOfKey, RULES, type SentRequest, sentRequest, wholeRequest } from '../support/sent-body.ts'

const JSON_TYPE = { 'content-type': 'application/json' }
const LINES = { lines: { candidates: [] } } as never

type Name = { kind: string; id: string }

/** Records that log each question. The account owns all resources except `foreign`. */
function records() {
  const log: unknown[][] = []
  const kept = {
    async pin(_call: unknown, names: readonly Name[]) {
      log.push(['pin', ...names.map(({ kind, id }) => `${kind} ${id}`)])
      if (names.some(({ id }) => id === 'foreign')) throw new GatewayError('not_found')
      return []
    },
    ready: async () => void log.push(['ready']),
    remember: async (_call: unknown, line: string, made: unknown) => void log.push(['remember', line, made]),
    forget: async (_call: unknown, { kind, id }: Name) => {
      log.push(['forget', `${kind} ${id}`])
      throw new Error('away')
    },
  }
  return { log, resources: kept as unknown as UpstreamResources }
}

async function checked(method: string, path: string, req: SentRequest = sentRequest({})) {
  const { resources, log } = records()
  const call = callOfKey()
  const rule = { ...RULES, resources, declared: undefined, refusedFiles: new RefusedFiles(), address: '' }
  const signal = new AbortController().signal
  const owned = await OwnedRequest.check(call, Object.assign(req, { method }), path, rule, signal)
  return { owned, log, call }
}

describe('a resource that a forwarded request names', () => {
  it('is looked up: in its path and query, and then in its body', async () => {
    const body = wholeRequest(JSON_TYPE, '{"file_id":"f","user":"person"}')
    const { log, call } = await checked(
      'POST',
      '/batches/b/x?vector_store_id=v&b=?&after=a&before_id=b',
      body,
    )
    assert.deepEqual(log, [
      ['pin', 'batch b', 'vector_store v'],
      ['pin', 'file f'],
    ])
    assert.equal(call.user, 'person')
    for (const path of ['/models', '/files', '/files?limit=1&after=foreign&page=foreign'])
      assert.deepEqual((await checked('GET', path)).log, [], path)
  })

  it('is refused before the body is read, where it is not the account’s', async () => {
    for (const path of ['/files/foreign', '/models?file_id=foreign', '/models?x=y?&file_id=foreign&z=?']) {
      const req = sentRequest({ ...JSON_TYPE, 'transfer-encoding': 'chunked' })
      await assert.rejects(checked('POST', path, req), { code: 'not_found' }, path)
      assert.equal(req.readableDidRead, false)
    }
    await assert.rejects(checked('POST', '/models', wholeRequest(JSON_TYPE, '{"file_id":"foreign"}')), {
      code: 'not_found',
    })
  })

  it('is no row of other accounts, for an eval', async () => {
    const run = '{"data_source":{"source":{"type":"responses"}}}'
    const asked = (path: string) => checked('POST', path, wholeRequest(JSON_TYPE, run))
    await assert.rejects(asked('/evals/e/runs'), { code: 'unsupported_feature' })
    await asked('/fine_tuning/jobs')
    await asked('/models')
    assert.deepEqual((await checked('POST', '/evals/e/runs', wholeRequest(JSON_TYPE, '[]'))).log, [
      ['pin', 'eval e'],
    ])
  })

  it('needs a store that works, before a line makes something', async () => {
    for (const [method, path, makes] of [
      ['POST', '/files', true],
      ['PUT', '/files', true],
      ['POST', '/threads/runs', true],
      ['PATCH', '/files', false],
      ['GET', '/files', false],
      ['POST', '/files/f', false],
      ['POST', '/models', false],
    ] as const)
      assert.equal((await checked(method, path)).log.flat().includes('ready'), makes, `${method} ${path}`)
  })

  it('may be files that it has run', async () => {
    const { owned } = await checked(
      'POST',
      '/batches',
      wholeRequest(JSON_TYPE, '{"input_file_id":"f","file_id":"g"}'),
    )
    assert.deepEqual([...owned.filesToRun], ['f'])
  })
})

describe('a request for a list', () => {
  it('is a reading one of a collection that belongs to accounts', async () => {
    for (const [method, path, headers, isList] of [
      ['GET', '/files', {}, true],
      ['HEAD', '/files?limit=1', {}, true],
      ['POST', '/files', {}, false],
      ['PUT', '/files', {}, false],
      ['PATCH', '/files', {}, false],
      ['DELETE', '/files', {}, false],
      ['GET', '/files/f', {}, false],
      ['GET', '/audio/voices', {}, false],
      ['GET', '/models', {}, false],
    ] as const) {
      const { owned } = await checked(method, path, sentRequest(headers))
      assert.equal(owned.listOn(LINES) instanceof OwnList, isList, `${method} ${path}`)
    }
    const { owned } = await checked('GET', '/files?limit=none')
    assert.throws(() => owned.listOn({ ...(LINES as object), lines: { candidates: [] } } as never), {
      param: 'limit',
    })
  })
})

describe('an answer that is read before it is sent', () => {
  const rows: [method: string, path: string, reads: boolean, readsEvent: boolean][] = [
    ['POST', '/files', true, true],
    ['PUT', '/files', true, true],
    ['POST', '/threads/runs', true, true],
    ['GET', '/files', false, false],
    ['PATCH', '/files', false, false],
    ['DELETE', '/files', false, false],
    ['GET', '/files/f', false, false],
    ['POST', '/files/f', false, false],
    ['GET', '/batches/b', true, false],
    ['HEAD', '/batches/b', false, false],
    ['HEAD', '/files', false, false],
    ['DELETE', '/batches/b', true, false],
    ['GET', '/batches/b/items', false, false],
    ['PUT', '/batches/b/items', false, false],
    ['POST', '/batches/b/cancel', true, false],
    ['POST', '/uploads/u/complete', true, false],
    ['GET', '/models', false, false],
    ['POST', '/models', false, false],
  ]
  for (const [method, path, reads, readsEvent] of rows)
    it(`is ${reads ? 'one' : 'none'}: ${method} ${path}`, async () => {
      const { owned } = await checked(method, path)
      assert.deepEqual(owned.headers, reads ? { 'accept-encoding': 'identity' } : {})
      for (const type of ['application/json', 'Application/JSON; charset=utf-8', 'application/vnd.a+json'])
        assert.equal(owned.mustRead(type), reads, type)
      for (const type of [
        undefined,
        '',
        'text/json',
        'text/event-stream',
        'application/jsonl',
        'x application/json',
      ])
        assert.equal(owned.mustRead(type), false, type)
      assert.equal(owned.mustReadEvent('text/event-stream; charset=utf-8'), readsEvent)
      for (const type of [undefined, 'application/json']) assert.equal(owned.mustReadEvent(type), false, type)
    })

  it('says what its line keeps', async () => {
    const read = async (method: string, path: string, answer: string, req?: SentRequest) => {
      const { owned, log } = await checked(method, path, req)
      await owned.read('line-7', Buffer.from(answer))
      return log.at(-1)
    }
    const file = { kind: 'file', id: 'out', tokens: 0 }
    assert.deepEqual(await read('POST', '/batches', '{"id":"b","output_file_id":"out"}'), [
      ...['remember', 'line-7'],
      [{ kind: 'batch', id: 'b', tokens: 0 }, file],
    ])
    assert.deepEqual(await read('GET', '/batches/b', '{"id":"b","output_file_id":"out"}'), [
      'remember',
      'line-7',
      [file],
    ])
    for (const answer of ['', 'no JSON', '[]', '"b"'])
      assert.deepEqual(await read('POST', '/batches', answer), ['remember', 'line-7', []], answer)
    assert.deepEqual(await read('POST', '/models', '{"id":"m"}'), ['remember', 'line-7', []])
  })

  it('counts what a conversation was begun with, as about a token for four bytes', async () => {
    for (const [path, text, tokens] of [
      ['/conversations', '{"items":[]}', 3],
      ['/conversations', '{"items": []}', 4],
      ['/threads', '{"items":[]}', 0],
    ] as const) {
      const { owned, log } = await checked('POST', path, wholeRequest(JSON_TYPE, text))
      await owned.read('l', Buffer.from('{"id":"c"}'))
      const [made] = (log.at(-1) ?? [])[2] as { tokens: number }[]
      assert.equal(made?.tokens, tokens, `${path} ${text}`)
    }
  })
})

describe('the end of a request', () => {
  it('ends the record of what it has deleted, and nothing else; a store that is away does no harm', async () => {
    for (const [method, path, forgotten] of [
      ['DELETE', '/files/f', ['forget', 'file f']],
      ['DELETE', '/files/f/?x=y', ['forget', 'file f']],
      ['DELETE', '/files/f/content', undefined],
      ['DELETE', '/files', undefined],
      ['DELETE', '/models/m', undefined],
      ['GET', '/files/f', undefined],
      ['POST', '/files/f', undefined],
    ] as const) {
      const { owned, log } = await checked(method, path)
      await owned.end()
      assert.deepEqual(
        log.find(([what]) => what === 'forget'),
        forgotten,
        `${method} ${path}`,
      )
    }
  })
})

describe('the rows of an eval’s run', () => {
  it('may be sent, or come from a file, or from nowhere', () => {
    for (const data_source of [
      { source: { type: 'file_content' } },
      { source: { type: 'file_id', id: 'f' } },
      { source: 'file' },
      { source: null },
      { type: 'jsonl' },
      [],
      'rows',
      undefined,
    ])
      assert.doesNotThrow(() => refuseForeignRows({ data_source }), JSON.stringify(data_source))
  })

  it('are refused from any other source', () => {
    for (const type of ['stored_completions', 'responses', '', 'FILE_ID', 7, null, undefined])
      assert.throws(
        () => refuseForeignRows({ data_source: { source: { type } } }),
        { code: 'unsupported_feature', param: 'data_source.source' },
        String(type),
      )
  })
})

describe('a resource that the JSON of a forwarded request may name', () => {
  const rows = [...RESPONSES, ...MESSAGES, ...CHATS, ...AGENTS]

  it('is what its account owns, whatever the type says that the body is of', async (t) => {
    const [one, two] = await twoUpstreams(t)
    const resources = new UpstreamResources({ store: await storeOf(rows.map(([kind]) => kind)) })
    const rules = [{ path: '/v1/odd/*rest', lines: ['line-0', 'line-1'] }]
    const gateway = await forwardGateway(t, { lines: [one.url, two.url], rules, resources })
    const send = (body: string, type = 'application/json', path = '/v1/odd/resource') =>
      gateway.ask(path, { method: 'POST', body: Buffer.from(body), headers: { 'content-type': type } })
    const types = [
      'application/json',
      'text/plain',
      'application/vnd.api+json',
      'application/x-ndjson',
      'unknown/one',
    ]
    for (const [i, [kind, param, body]] of rows.entries()) {
      for (const id of NOT_OWN) {
        const refused = await send(` \r\n${JSON.stringify(body(id))}`, types[i % types.length])
        assert.equal(refused.status, kind === 'item' ? 400 : 404, `${param}: ${id.slice(0, 20)}`)
      }
      assert.equal(one.requests.length + two.requests.length, 0, `${param} (${kind})`)
      const raw = JSON.stringify(body('own-1'))
      assert.equal((await send(raw)).status, 200, param)
      assert.equal(one.requests.length, 0)
      assert.equal(two.requests[0]?.raw.toString(), raw)
      two.requests.length = 0
    }
    for (const [body, type] of [
      ['{"file_id":', 'application/json'],
      ['{"file_id":"foreign","a":NaN}', 'text/plain'],
      ['\u0000', 'application/json'],
      ['["a",{"file_id":"foreign"}]', 'application/json'],
      ['{"file_uri":"https://h/v1beta/files/foreign#/v1beta/files/own-1"}', 'application/json'],
      ['\uFEFF{"file_id":"foreign"}', 'application/json'],
      ['file_id=foreign', 'application/x-www-form-urlencoded'],
      ['a=b&file_ids[]=foreign', 'application/x-www-form-urlencoded'],
      ['a=b;file_id=foreign', 'application/x-www-form-urlencoded'],
    ] as const)
      assert.ok([400, 404].includes((await send(body, type)).status), body)
    const queries = [
      'vector_store_id=foreign',
      'a=b;vector_store_id=foreign',
      'a;vector_store_id=foreign;b=c',
      'filter[vector_store_id]=foreign',
      'file_ids[]=foreign',
      'a[conversation][id]=foreign',
      'model=m&call_id=foreign',
    ]
    for (const query of queries)
      assert.equal((await send('{}', 'application/json', `/v1/odd/resource?${query}`)).status, 404, query)
    assert.equal(one.requests.length + two.requests.length, 0)
    const own = await send(
      '{}',
      'application/json',
      '/v1/odd/resource?metadata[file_id]=mine&limit=2;order=asc',
    )
    assert.equal(own.status, 200)
  })

  it('is nothing that all accounts have stored, as the rows of an eval', async (t) => {
    const [one] = await twoUpstreams(t)
    const resources = new UpstreamResources({ store: await storeOf(['eval', 'file']) })
    const rules = [{ path: '/v1/evals/*rest', lines: ['line-0'] }]
    const gateway = await forwardGateway(t, { lines: [one.url], rules, resources })
    const run = (source: object, type = 'application/json') =>
      gateway.ask('/v1/evals/own-0/runs', {
        method: 'POST',
        body: Buffer.from(JSON.stringify({ data_source: { type: 'completions', source } })),
        headers: { 'content-type': type },
      })
    for (const source of [{ type: 'stored_completions', model: 'm' }, { type: 'responses' }, {}]) {
      for (const type of ['application/json', 'text/plain']) {
        const refused = await run(source, type)
        assert.equal(refused.status, 400)
        const { error } = await envelopeOf(refused)
        assert.deepEqual([error.code, error.param], ['unsupported_feature', 'data_source.source'])
      }
    }
    assert.equal(one.requests.length, 0)
    assert.equal((await run({ type: 'file_content', content: [] })).status, 200)
    assert.equal((await run({ type: 'file_id', id: 'own-0' })).status, 200)
    assert.equal((await run({ type: 'file_id', id: 'foreign' })).status, 404)
    assert.equal(one.requests.length, 2)
  })

  it('is nothing in a form, wherever the field stands', async (t) => {
    const whole: string[] = []
    const one = await byteUpstream(t, (req, res) => {
      req
        .on('data', () => {})
        .on('end', () => {
          whole.push(req.url ?? '')
          answerJson(res, 200, {})
        })
    })
    const resources = new UpstreamResources()
    const gateway = await forwardGateway(t, { lines: [one.url], resources })
    const fields = ['file_id', 'file_ids[]', 'input[file_id]', 'conversation[id]', 'container', 'Thread_Id']
    for (const field of fields) {
      const form = new FormData()
      form.append('purpose', 'user_data')
      form.append('file', new Blob([Buffer.alloc(300_000, 'x')]), 'a.bin')
      form.append(field, 'foreign')
      const refused = await gateway.ask('/v1/files', { method: 'POST', body: form })
      const { error } = (await refused.json()) as { error: { code: string; param: string } }
      assert.deepEqual([refused.status, error.code, error.param], [400, 'unsupported_feature', field])
    }
    const heads = [
      'Content-Disposition: form-data; filename="x"; name=file_id',
      'content-disposition:form-data;name="file_\\id"',
      "Content-Disposition: form-data; name*=utf-8''file%5Fid",
      'Content-Disposition: form-data;\r\n name="file_id"',
      'Content-Disposition: form-data; name="request"\r\nContent-Type: application/json',
    ]
    for (const head of heads) {
      const body = `--b\r\n${head}\r\n\r\nforeign\r\n--b--\r\n`
      const headers = { 'content-type': 'multipart/form-data; boundary=b' }
      assert.equal((await gateway.ask('/v1/files', { method: 'POST', body, headers })).status, 400, head)
    }
    assert.deepEqual(whole, [], 'no line got a whole request')
    const form = new FormData()
    form.append('purpose', 'user_data')
    form.append('expires_after[seconds]', '3600')
    form.append('file', new Blob(['{"file_id":"only content"}'], { type: 'application/json' }), 'a.json')
    assert.equal((await gateway.ask('/v1/files', { method: 'POST', body: form })).status, 200)
  })

  it('is nothing in a form of which an upstream could find another boundary', async (t) => {
    const types: string[] = []
    const line = await byteUpstream(t, (req, res) => {
      types.push(req.headers['content-type'] ?? '')
      req.on('data', () => {}).on('end', () => answerJson(res, 200, {}))
    })
    const gateway = await forwardGateway(t, { lines: [line.url], resources: new UpstreamResources() })
    const send = (type: string, boundary: string) => {
      const body = `--${boundary}\r\nContent-Disposition: form-data; name="FIELD"\r\n\r\nx\r\n--${boundary}--\r\n`
      return async (field: string) =>
        (
          await gateway.ask('/v1/files', {
            method: 'POST',
            body: body.replace('FIELD', field),
            headers: { 'content-type': type },
          })
        ).status
    }
    const ambiguous = [
      'multipart/form-data; boundary=fake; boundary=real',
      'multipart/form-data; x-boundary=fake; boundary=real',
      'multipart/form-data; x="; boundary=fake"; boundary=real',
      'multipart/form-data; x="; boundary=fake; boundary=real',
      'multipart/form-data; (boundary=fake) boundary=real',
      'multipart/form-data; boundary="fa\\ke"',
      'multipart/form-data; boundary=fake(real)',
      'multipart/form-data; boundary=fake,real',
      'multipart/form-data; boundary="fake" real',
      "multipart/form-data; boundary*=utf-8''real; boundary=fake",
      'multipart/form-data; boundary*0=re; boundary*1=al; boundary=fake',
      'multipart/form-data; name=x; boundary=real',
      'multipart/form-data, multipart/form-data; boundary=real',
      'multipart/form-data boundary=real',
      `multipart/form-data; boundary=${'x'.repeat(201)}`,
    ]
    for (const type of ambiguous)
      for (const boundary of ['fake', 'real', 'x'.repeat(201)])
        for (const field of ['file_id', 'purpose']) assert.equal(await send(type, boundary)(field), 400, type)
    assert.deepEqual(types, [], 'no line got such a form')

    const plain = [
      'multipart/form-data; boundary=real',
      'Multipart/Form-Data;boundary="real"',
      'multipart/form-data; charset=utf-8; boundary=real',
      'multipart/form-data;boundary="real";charset=UTF-8',
      'multipart/form-data; boundary=real;',
    ]
    for (const type of plain) {
      assert.equal(await send(type, 'real')('file_id'), 400, type)
      assert.equal(await send(type, 'real')('purpose'), 200, type)
    }
    for (const boundary of [
      '----WebKitFormBoundary7MA4YWxkTrZu0gW',
      '------------------------d74496d66958873e',
      '----formdata-undici-0123',
      'axios-1.7.2-boundary-x_Y',
      "gc0p4Jq0M:2Yt08jU534c0p=='?+./",
    ]) {
      const [type, quoted] = [boundary, `"${boundary}"`].map(
        (text) => `multipart/form-data; boundary=${text}`,
      )
      assert.equal(await send(type!, boundary)('purpose'), 200, type)
      assert.equal(await send(quoted!, boundary)('file_ids[]'), 400, quoted)
    }
  })

  it('needs the key of the account that owns it', async (t) => {
    const [one] = await twoUpstreams(t)
    const resources = new UpstreamResources({ store: await storeOf(['file']) })
    const gateway = await forwardGateway(t, { lines: [one.url], resources })
    assert.equal((await gateway.ask('/v1/files/foreign')).status, 404)
    const headers = { authorization: 'Bearer sk-test-other' }
    assert.equal((await gateway.ask('/v1/files/own-0', { headers })).status, 404)
    assert.equal((await gateway.ask('/v1/files/foreign', { headers })).status, 200)
  })
})
