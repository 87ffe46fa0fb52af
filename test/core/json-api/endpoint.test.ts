import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { z } from 'zod'
import { callOf } from '../../../lib/core/call/index.ts'
import {
  accountFrom,
  anAccount,
  answersWith,
  endpointFor,
  isoTime,
  listPage,
  newRouter,
  orNotFound,
  queryTime,
  serveEndpoints,
} from '../../../lib/core/json-api/index.ts'
import { beginCall, errorEnvelope } from '../../../lib/index.ts'
import { envelopeIn } from '../../support/answer-bodies.ts'
import { type AppServer, recordingLogger, serveApp } from '../../support/app-server.ts'

const METHODS = ['get', 'post', 'patch', 'put', 'delete'] as const
const JSON_TYPE = { 'content-type': 'application/json' }

const ok = answersWith('Ok', z.object({ ok: z.literal(true) }))
const any = answersWith('Any', z.looseObject({}))
const endpoint = endpointFor<{ account: string }>()
const ENDPOINTS = [
  ...METHODS.map((method) =>
    endpoint({
      id: method,
      method,
      path: '/bare',
      summary: '',
      answers: ok,
      handle: () => ({ ok: true as const }),
    }),
  ),
  endpoint({
    id: 'body',
    method: 'post',
    path: '/body',
    summary: '',
    body: z.strictObject({ name: z.string(), in: z.strictObject({ deep: z.number() }).optional() }),
    answers: answersWith('Any', z.looseObject({}), 201),
    handle: ({ body }) => body,
  }),
  endpoint({
    id: 'query',
    method: 'get',
    path: '/query',
    summary: '',
    query: z.strictObject({ a: z.string() }),
    answers: any,
    handle: ({ query, tags }) => ({ query, tags }),
  }),
  endpoint({
    id: 'tagged',
    method: 'get',
    path: '/tagged',
    summary: '',
    query: z.strictObject({ a: z.string() }),
    tagged: true,
    answers: any,
    handle: ({ query, tags }) => ({ query, tags }),
  }),
  endpoint({
    id: 'thing',
    method: 'get',
    path: '/things/{id}',
    summary: '',
    answers: any,
    handle: ({ req, id }) => orNotFound(req, id === 'a' && { id }),
  }),
  endpoint({
    id: 'text',
    method: 'get',
    path: '/text',
    summary: '',
    answers: any,
    handle({ res }) {
      res.send('text')
      return undefined
    },
  }),
  endpoint({
    id: 'own',
    method: 'get',
    path: '/own',
    summary: '',
    answers: any,
    handle: (_request, { account }) => ({ account }),
  }),
]

let app: AppServer
before(async () => {
  app = await serveApp((app) => {
    app.use(beginCall())
    app.use((req, _res, next) => {
      const account = req.get('x-account')
      if (account !== undefined) Object.assign(callOf(req), { principal: { accountId: account } })
      next()
    })
    app.use(
      '/new',
      serveEndpoints(newRouter(), ENDPOINTS, () => ({ account: 'none' })),
    )
    const ofCaller = accountFrom()
    app.use(
      '/own',
      serveEndpoints(newRouter(), ENDPOINTS, (req) => ({ account: ofCaller(req) })),
    )
    const ofHeader = accountFrom((req) => req.get('x-other'))
    app.use(
      '/of',
      serveEndpoints(newRouter(), ENDPOINTS, (req) => ({ account: ofHeader(req) })),
    )
    app.use(errorEnvelope({ logger: recordingLogger() }))
  })
})
after(() => app.close())

/** The status, and what is answered, or what is said of the fault. */
async function ask(path: string, init: RequestInit = {}): Promise<unknown[]> {
  const res = await fetch(`${app.url}${path}`, init)
  const body = await res.json()
  if (res.ok) return [res.status, body]
  const { code, param, message } = envelopeIn(body).error
  return [res.status, code, param, message]
}
const send = (body: string | Buffer, headers: Record<string, string> = JSON_TYPE, method = 'POST') => ({
  method,
  body,
  headers,
})

describe('an endpoint', () => {
  for (const method of METHODS)
    it(`refuses an unknown parameter and an unknown member: ${method}`, async () => {
      const init = { method: method.toUpperCase() }
      assert.deepEqual(await ask('/new/bare', init), [200, { ok: true }])
      assert.deepEqual(await ask('/new/bare?dry=1', init), [
        400,
        'invalid_request',
        'dry',
        'The query parameter "dry" is not known here.',
      ])
      if (method === 'get') return
      const sent = (body: string) => ask('/new/bare', send(body, JSON_TYPE, init.method))
      assert.deepEqual(await sent('{}'), [200, { ok: true }])
      assert.deepEqual(await sent('{"force":true}'), [
        400,
        'invalid_request',
        'force',
        'force is not a known member.',
      ])
      assert.equal((await sent('[]'))[0], 400)
    })

  it('reads its query, and reads tags only if it declares them', async () => {
    assert.deepEqual(await ask('/new/query?a=1'), [200, { query: { a: '1' } }])
    assert.deepEqual((await ask('/new/query?a=1&tag:team=x')).slice(0, 3), [
      400,
      'invalid_request',
      'tag:team',
    ])
    assert.deepEqual(await ask('/new/tagged?a=1&tag:team=x'), [
      200,
      { query: { a: '1' }, tags: { team: 'x' } },
    ])
  })

  it('answers with the result, which no cache stores, or with 404', async () => {
    const res = await fetch(`${app.url}/new/things/a`)
    assert.deepEqual([await res.json(), res.headers.get('cache-control')], [{ id: 'a' }, 'private, no-store'])
    assert.deepEqual((await ask('/new/things/b')).slice(0, 2), [404, 'not_found'])
  })

  it('may send its answer itself', async () => {
    const res = await fetch(`${app.url}/new/text`)
    assert.deepEqual([res.status, await res.text()], [200, 'text'])
  })

  it('answers for the account of its caller, and refuses a request without one before reading it', async () => {
    const headers = { 'x-account': 'acme' }
    assert.deepEqual(await ask('/own/own', { headers }), [200, { account: 'acme' }])
    for (const path of ['/own/own', '/own/own?surprise=1'])
      assert.deepEqual((await ask(path)).slice(0, 2), [401, 'missing_credential'])
    assert.deepEqual(await ask('/of/own', { headers: { ...headers, 'x-other': 'globex' } }), [
      200,
      { account: 'globex' },
    ])
    assert.deepEqual((await ask('/of/own', { headers })).slice(0, 2), [401, 'missing_credential'])
  })
})

describe('the account whose rows are returned', () => {
  it('is that of a function, or every account', () => {
    for (const account of ['all', () => 'acme']) assert.equal(anAccount.accepts(account), true)
    for (const account of ['acme', '', undefined, {}]) assert.equal(anAccount.accepts(account), false)
  })
})

describe('a page of a list', () => {
  const rows = ['a', 'b', 'c'].map((id) => ({ id }))
  const cursor = (id: string) => Buffer.from(id).toString('base64url')

  it('contains the cursor of the next page, if there is one', () => {
    const page = (limit: number, reached?: string) => listPage(rows, limit, (row) => row, reached)
    assert.deepEqual(page(2), { object: 'list', data: rows.slice(0, 2), next_cursor: cursor('b') })
    assert.deepEqual(page(3), { object: 'list', data: rows, next_cursor: null })
    assert.equal(page(3, 'x').next_cursor, cursor('x'))
  })
})

describe('the body of a request', () => {
  const NO_OBJECT = 'The body must be a JSON object, sent with "Content-Type: application/json".'
  const deep = 'n'.repeat(300)

  const ROWS: [body: string, answer: unknown[]][] = [
    ['{"name":"n"}', [201, { name: 'n' }]],
    ['{"name":"n","in":{"deep":1}}', [201, { name: 'n', in: { deep: 1 } }]],
    ['[]', [400, 'invalid_request', undefined, NO_OBJECT]],
    ['null', [400, 'invalid_request', undefined, NO_OBJECT]],
    ['"a"', [400, 'invalid_request', undefined, NO_OBJECT]],
    ['{"name":"n","other":1}', [400, 'invalid_request', 'other', 'other is not a known member.']],
    [
      '{"name":"n","in":{"deep":1,"more":1}}',
      [400, 'invalid_request', 'in.more', 'in.more is not a known member.'],
    ],
    [
      `{"name":"n","${deep}":1}`,
      [400, 'invalid_request', deep.slice(0, 200), `${deep.slice(0, 200)} is not a known member.`],
    ],
  ]
  for (const [body, answer] of ROWS)
    it(`is read: ${body.slice(0, 60)}`, async () =>
      assert.deepEqual(await ask('/new/body', send(body)), answer))

  it('has its faults reported with their place', async () => {
    const [status, code, param, message] = await ask('/new/body', send('{"name":"n","in":{"deep":"x"}}'))
    assert.deepEqual([status, code, param], [400, 'invalid_request', 'in.deep'])
    assert.match(String(message), /^in\.deep: .*number.*\.$/)
  })

  it('is refused if an object has a member twice, at any depth', async () => {
    for (const [body, param] of [
      ['{"name":"a","name":"b"}', 'name'],
      ['{"name":"a","n\\u0061me":"b"}', 'name'],
      ['{"name":"a","in":{"deep":1,"deep":2}}', 'deep'],
    ] as const) {
      const message = `"${param}" occurs twice in the same object of the body. Send it once.`
      assert.deepEqual(await ask('/new/body', send(body)), [400, 'invalid_request', param, message])
    }
  })

  it('is refused if it is not JSON in UTF-8', async () => {
    assert.deepEqual((await ask('/new/body', send('{"name":')))[1], 'invalid_request')
    assert.equal((await ask('/new/body', send(Buffer.from('{"name":"\xe9"}', 'latin1'))))[0], 400)
  })

  it('may begin with a byte order mark', async () => {
    assert.deepEqual(await ask('/new/body', send('\ufeff{"name":"n"}')), [201, { name: 'n' }])
  })

  const TYPES: [type: string, isJson: boolean][] = [
    ['application/json', true],
    ['Application/JSON; charset=utf-8', true],
    ['application/problem+json', true],
    ['application/vnd.a-b.c+json ;x=y', true],
    ['application/jsonp', false],
    ['application/+json', false],
    ['text/json', false],
    ['xapplication/json', false],
    ['text/plain', false],
  ]
  for (const [type, isJson] of TYPES)
    it(`is ${isJson ? '' : 'not '}JSON with the content type ${type}`, async () => {
      const [status] = await ask('/new/body', send('{"name":"n"}', { 'content-type': type }))
      assert.equal(status, isJson ? 201 : 400)
    })

  it('is JSON if it has no content type', async () => {
    assert.deepEqual(await ask('/new/body', send(Buffer.from('{"name":"n"}'), {})), [201, { name: 'n' }])
  })

  it('is 64 KiB at most', async () => {
    const body = (length: number) => `{"name":"${'x'.repeat(length - '{"name":""}'.length)}"}`
    assert.equal((await ask('/new/body', send(body(64 * 1024))))[0], 201)
    assert.equal((await ask('/new/body', send(body(64 * 1024 + 1))))[0], 413)
  })
})

describe('a time', () => {
  it('is written in ISO 8601', () => {
    assert.deepEqual([isoTime(0), isoTime(null)], ['1970-01-01T00:00:00.000Z', null])
  })

  it('is read from a query as a time with its zone, or as a date', () => {
    const read = (text: unknown) => queryTime.safeParse(text).data
    assert.equal(read('2026-01-31T12:00:00Z'), Date.UTC(2026, 0, 31, 12))
    assert.equal(read('2026-01-31T12:00:00+02:00'), Date.UTC(2026, 0, 31, 10))
    assert.equal(read('2026-01-31'), Date.UTC(2026, 0, 31))
    for (const odd of ['2026-01-31T12:00:00', '31.01.2026', '2026-02-30', '', 7, undefined])
      assert.equal(read(odd), undefined)
    assert.match(String(queryTime.safeParse('x').error?.issues[0]?.message), /write a \+ as %2B/)
  })
})
