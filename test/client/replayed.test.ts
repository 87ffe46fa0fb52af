import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { ReplayError, withRetries } from '../../lib/client/index.ts'
import { keyedGateway } from '../middleware/idempotency/keyed-gateway.ts'
import { chatBody, KEY } from '../support/gateway.ts'
import { chatAnswer, chatEvents, startUpstream, stream } from '../support/scripted-upstream.ts'
import { type Answer, answering, cut, json, post, refusal } from './scripted-answers.ts'

const ID = 'req_original'
const soon = { firstDelayMs: 1 }
const replayed = refusal(409, 'idempotency_key_replayed', { 'x-original-request-id': ID })
const entry = (members: object): Answer =>
  json(200, {
    id: ID,
    stream: false,
    status: 200,
    outcome: 'completed',
    response_body: '{"a":1}',
    ...members,
  })
const CHAT = '/v1/chat/completions'

/** The error that a call ends in whose entry in the call log is this. */
async function faultOf(url: string, path = CHAT): Promise<ReplayError> {
  const error: unknown = await withRetries(fetch, soon)(url + path, post()).then(
    () => undefined,
    (thrown: unknown) => thrown,
  )
  assert.ok(error instanceof ReplayError, String(error))
  assert.equal(error.originalRequestId, ID)
  return error
}

describe('a request that has been processed before', () => {
  it('receives its answer from the call log, which is read with its own key', async (t) => {
    const server = await answering(t, replayed, entry({}))
    const call = post({ model: 'chat' }, { 'x-api-key': 'sk-2', cookie: 'a=b', 'x-other': 'c' })
    const response = await withRetries(fetch, soon)(server.url + CHAT, call)
    assert.deepEqual(await response.json(), { a: 1 })
    assert.equal(response.status, 200)
    assert.deepEqual(
      ['content-type', 'x-request-id', 'request-id', 'idempotent-replayed'].map((name) =>
        response.headers.get(name),
      ),
      ['application/json', ID, ID, 'true'],
    )
    const [, read] = server.sent
    assert.deepEqual([read?.method, read?.path, read?.body.length], ['GET', `/v1/calls/${ID}`, 0])
    const { authorization, 'x-api-key': key, cookie, 'x-other': other } = read?.headers ?? {}
    assert.deepEqual([authorization, key, cookie, other], ['Bearer sk-1', 'sk-2', undefined, undefined])
    assert.equal(read?.headers['idempotency-key'], undefined)
  })

  for (const name of ['api-key', 'x-goog-api-key']) {
    it(`receives its answer from the call log also if its key was passed as ${name}`, async (t) => {
      const server = await answering(t, replayed, entry({}))
      const headers = { [name]: 'sk-3', 'content-type': 'application/json' }
      await withRetries(fetch, soon)(server.url + CHAT, { method: 'POST', headers, body: '{}' })
      assert.equal(server.sent[1]?.headers[name], 'sk-3')
    })
  }

  it('is recognised by the body alone, if a page cannot read the header', async (t) => {
    const error = { code: 'idempotency_key_replayed', details: { original_request_id: ID } }
    const server = await answering(t, json(409, { error }), entry({}))
    assert.equal((await withRetries(fetch, soon)(server.url + CHAT, post())).status, 200)
  })

  it('is recognised by its code, not by any conflict that names an earlier request', async (t) => {
    const server = await answering(t, refusal(409, 'conflict', { 'x-original-request-id': ID }))
    assert.equal((await withRetries(fetch, soon)(server.url + CHAT, post())).status, 409)
    assert.deepEqual(
      server.sent.map(({ path }) => path),
      [CHAT],
    )
  })

  it('is recognised by the header alone where the body has no code', async (t) => {
    const error = { type: 'invalid_request_error', message: 'No.' }
    const named = json(409, { type: 'error', error }, { 'x-original-request-id': ID })
    const server = await answering(t, named, entry({}))
    assert.deepEqual(await (await withRetries(fetch, soon)(server.url + CHAT, post())).json(), { a: 1 })
  })

  for (const [path, expected] of [
    ['/v1/messages', '/v1/calls/'],
    ['/llm/v1/chat/completions?x=1', '/llm/v1/calls/'],
    ['/llm/api/v3/contents/generations/tasks', '/llm/v1/calls/'],
    ['/elsewhere', '/v1/calls/'],
  ] as const) {
    it(`is looked up at ${expected} for ${path}`, async (t) => {
      const server = await answering(t, replayed, entry({}))
      await withRetries(fetch, soon)(server.url + path, post())
      assert.equal(server.sent[1]?.path, expected + ID)
    })
  }

  it('is looked up at the URL in the options', async (t) => {
    const server = await answering(t, replayed, entry({}))
    const callLogUrl = (url: string, id: string) => new URL(`/log/${id}`, url).href
    await withRetries(fetch, { ...soon, callLogUrl })(server.url + CHAT, post())
    assert.equal(server.sent[1]?.path, `/log/${ID}`)
  })

  it('is looked up again while the entry does not exist, and while the log does not answer', async (t) => {
    const notYet = refusal(404, 'not_found')
    const server = await answering(t, replayed, notYet, cut, refusal(503, 'x'), notYet, entry({}))
    const response = await withRetries(fetch, soon)(server.url + CHAT, post())
    assert.deepEqual(await response.json(), { a: 1 })
    assert.equal(server.sent.filter(({ method }) => method === 'POST').length, 1)
  })

  for (const [protocol, body] of [
    ['OpenAI-style', 'data: {"a":1}\n\ndata: [DONE]\n\n'],
    [
      'Anthropic-style',
      'event: message_start\ndata: {}\n\nevent: message_stop\ndata: {"type":"message_stop"}\n\n',
    ],
  ] as const) {
    for (const outcome of ['completed', 'interrupted']) {
      it(`has its ${protocol} stream, which was ${outcome} but is kept to its end`, async (t) => {
        const server = await answering(t, replayed, entry({ stream: true, outcome, response_body: body }))
        const response = await withRetries(fetch, soon)(server.url + CHAT, post())
        assert.equal(await response.text(), body)
        assert.match(String(response.headers.get('content-type')), /^text\/event-stream/)
      })
    }
  }
})

describe('a request that has been processed before and whose answer is not available fails with a clear error', () => {
  const stream = { stream: true, outcome: 'interrupted', response_body: 'data: {"a":1}\n\n' }
  for (const [name, answers, fault] of [
    ['no entry', [refusal(404, 'not_found')], 'not_found'],
    ['no answer kept', [entry({ response_body: null })], 'not_kept'],
    ['an entry that is none', [json(200, null)], 'not_kept'],
    ['an answer that is no text', [entry({ response_body: '\ufffdPNG' })], 'not_kept'],
    ['an answer marked as cut', [entry({ response_body_truncated: true })], 'truncated'],
    ['an answer cut at its most', [entry({ response_body: '{"a"\n[cut after 4 bytes]' })], 'truncated'],
    ['half of a JSON answer', [entry({ outcome: 'interrupted', response_body: '{"a"' })], 'incomplete'],
    ['half of a stream', [entry(stream)], 'incomplete'],
    ['a log that is closed to the key', [refusal(403, 'ip_not_allowed')], 'unreadable'],
    ['a log that is away', [refusal(503, 'x')], 'unreadable'],
    ['a log without a connection', [cut], 'unreadable'],
    ['a log that is no JSON', [(res) => void res.end('<html>')], 'unreadable'],
  ] as [string, Answer[], string][]) {
    it(`${name}: ${fault}`, async (t) => {
      const server = await answering(t, replayed, ...answers)
      const error = await faultOf(server.url)
      assert.equal(error.fault, fault)
      assert.match(error.message, /^The request ran as req_original, but .+\.$/)
      assert.equal(server.sent.filter(({ method }) => method === 'POST').length, 1, 'not run again')
    })
  }

  it('which contains the available part of the answer', async (t) => {
    const server = await answering(t, replayed, entry(stream))
    assert.equal((await faultOf(server.url)).partialBody, stream.response_body)
    const none = await answering(t, replayed, refusal(404, 'not_found'))
    assert.equal((await faultOf(none.url)).partialBody, null)
  })
})

describe('a gateway', () => {
  const call = (key: string, extra = {}) => ({
    ...post(chatBody(extra), { authorization: `Bearer ${KEY}`, 'idempotency-key': key }),
  })

  it('whose call log kept too little of an answer', async (t) => {
    const upstream = await startUpstream((res) => chatAnswer(res, 'x'.repeat(500)))
    t.after(() => upstream.close())
    const gateway = await keyedGateway(t, { lines: [upstream.url], idempotency: { answerLimitBytes: 100 } })
    const send = withRetries(fetch, soon)
    await (await send(gateway.url + CHAT, call('k'))).text()
    await assert.rejects(send(gateway.url + CHAT, call('k')), { name: 'ReplayError', fault: 'truncated' })
    assert.equal(upstream.requests.length, 1)
  })

  it('whose first caller left in the middle of a stream', async (t) => {
    const upstream = await startUpstream((res) =>
      stream(res, chatEvents(['one ', 'two ']).slice(0, 3), { end: false }),
    )
    t.after(() => upstream.close())
    const gateway = await keyedGateway(t, { lines: [upstream.url] })
    const send = withRetries(fetch, { ...soon, keyWaitMs: 30_000 })
    const first = await send(gateway.url + CHAT, call('k', { stream: true }))
    await first.body?.cancel()
    const again = send(gateway.url + CHAT, call('k', { stream: true }))
    await assert.rejects(again, (error: ReplayError) => {
      assert.equal(error.fault, 'incomplete')
      assert.match(String(error.partialBody), /one /)
      return true
    })
    assert.equal(upstream.requests.length, 1)
  })

  it('that still processes the first request makes the second wait for the same answer', async (t) => {
    const { promise: mayAnswer, resolve: goOn } = Promise.withResolvers<void>()
    const upstream = await startUpstream(async (res) => {
      await mayAnswer
      chatAnswer(res, 'late')
    })
    t.after(() => upstream.close())
    const gateway = await keyedGateway(t, { lines: [upstream.url] })
    const codes: unknown[] = []
    const send = withRetries(fetch, {
      onRetry: ({ code }) => {
        codes.push(code)
        goOn()
      },
    })
    const first = send(gateway.url + CHAT, call('k'))
    while (upstream.requests.length === 0) await sleep(5)
    const second = await send(gateway.url + CHAT, call('k'))
    assert.deepEqual(await second.json(), await (await first).json())
    assert.deepEqual(codes, ['idempotency_key_in_use'])
    assert.equal(upstream.requests.length, 1)
  })
})
