import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { KeptThings } from '../../../lib/middleware/references/index.ts'
import { envelopeOf } from '../../support/answer-bodies.ts'
import { bytesOf, byteUpstream } from '../../support/byte-upstream.ts'
import { forwardGateway } from '../../support/forward-gateway.ts'
import {
  AGENTS,
  CHATS,
  MESSAGES,
  NOT_OWN,
  RESPONSES,
  storeOf,
  twoUpstreams,
} from '../../support/reference-rows.ts'
import { answerJson } from '../../support/scripted-upstream.ts'

describe('what the JSON of a forwarded request may name', () => {
  const rows = [...RESPONSES, ...MESSAGES, ...CHATS, ...AGENTS]

  it('is what its account owns, whatever the type says that the body is of', async (t) => {
    const [one, two] = await twoUpstreams(t)
    const kept = new KeptThings({ store: await storeOf(rows.map(([kind]) => kind)) })
    const rules = [{ path: '/v1/odd/*rest', lines: ['line-0', 'line-1'] }]
    const gateway = await forwardGateway(t, { lines: [one.url, two.url], rules, kept })
    const send = (body: string, type = 'application/json', path = '/v1/odd/thing') =>
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
      assert.equal((await send('{}', 'application/json', `/v1/odd/thing?${query}`)).status, 404, query)
    assert.equal(one.requests.length + two.requests.length, 0)
    const own = await send('{}', 'application/json', '/v1/odd/thing?metadata[file_id]=mine&limit=2;order=asc')
    assert.equal(own.status, 200)
  })

  it('is nothing that all accounts have stored, as the rows of an eval', async (t) => {
    const [one] = await twoUpstreams(t)
    const kept = new KeptThings({ store: await storeOf(['eval', 'file']) })
    const rules = [{ path: '/v1/evals/*rest', lines: ['line-0'] }]
    const gateway = await forwardGateway(t, { lines: [one.url], rules, kept })
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

  it('is nothing in a text that does not begin as JSON, which passes as it is', async (t) => {
    const received: string[] = []
    const upstream = await byteUpstream(t, async (req, res) => {
      received.push(String(await bytesOf(req)))
      res.end()
    })
    const kept = new KeptThings({ store: await storeOf([]) })
    const rules = [{ path: '/v1/odd/*rest', lines: ['line-0'] }]
    const gateway = await forwardGateway(t, { lines: [upstream.url], rules, kept })
    const text = 'a text: {"file_id":"foreign"}'
    const headers = { 'content-type': 'text/plain' }
    const passed = await gateway.ask('/v1/odd/thing', { method: 'POST', body: text, headers })
    assert.equal(passed.status, 200)
    assert.deepEqual(received, [text])
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
    const kept = new KeptThings()
    const gateway = await forwardGateway(t, { lines: [one.url], kept })
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
    const gateway = await forwardGateway(t, { lines: [line.url], kept: new KeptThings() })
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
    const kept = new KeptThings({ store: await storeOf(['file']) })
    const gateway = await forwardGateway(t, { lines: [one.url], kept })
    assert.equal((await gateway.ask('/v1/files/foreign')).status, 404)
    const headers = { authorization: 'Bearer sk-test-other' }
    assert.equal((await gateway.ask('/v1/files/own-0', { headers })).status, 404)
    assert.equal((await gateway.ask('/v1/files/foreign', { headers })).status, 200)
  })
})
