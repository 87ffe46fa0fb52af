import assert from 'node:assert/strict'
import type { ServerResponse } from 'node:http'
import { type TestContext, test } from 'node:test'
import { chatBody } from '../../support/gateway.ts'
import {
  answerJson,
  chatAnswer,
  chatEvents,
  startUpstream,
  stream,
  type UpstreamScript,
} from '../../support/scripted-upstream.ts'
import { type ObservedOptions, startObserved } from './observed-gateway.ts'
import { Scrape } from './scrape.ts'

const CHAT = '/v1/chat/completions'
const ofChat = { gen_ai_operation_name: 'chat', gen_ai_request_model: 'chat' }

async function observed(
  t: TestContext,
  scripts: readonly UpstreamScript[],
  options?: Partial<ObservedOptions>,
) {
  const upstreams = await Promise.all(scripts.map((script) => startUpstream(script)))
  for (const upstream of upstreams) t.after(() => upstream.close())
  return startObserved(t, { lines: upstreams.map(({ url }) => ({ url })), ...options })
}

test('an answered call: counted, timed, with its tokens, its charge and its attempt', async (t) => {
  const gateway = await observed(t, [(res) => chatAnswer(res)])
  assert.equal((await gateway.post(CHAT, chatBody())).status, 200)
  const scrape = await gateway.scrape()
  const completed = { ...ofChat, http_response_status_code: '200', model_gateway_outcome: 'completed' }
  assert.equal(scrape.sum('model_gateway_calls_total', completed), 1)
  assert.equal(scrape.sum('gen_ai_server_request_duration_count', ofChat), 1)
  assert.ok(scrape.sum('gen_ai_server_request_duration_sum', ofChat) > 0)
  assert.equal(scrape.sum('gen_ai_client_operation_duration_count', { model_gateway_line: 'line-0' }), 1)
  assert.equal(
    scrape.sum('model_gateway_attempts_total', {
      model_gateway_line: 'line-0',
      model_gateway_outcome: 'completed',
    }),
    1,
  )
  const tokens = (type: string) =>
    scrape.sum('model_gateway_tokens_total', {
      gen_ai_request_model: 'chat',
      gen_ai_token_type: type,
      model_gateway_usage_source: 'measured',
    })
  assert.deepEqual([tokens('input'), tokens('output')], [7, 3])
  assert.equal(scrape.sum('gen_ai_client_token_usage_sum', { gen_ai_token_type: 'output' }), 3)
  assert.equal(scrape.sum('model_gateway_charges_total', { gen_ai_request_model: 'chat' }), 0.01)
  assert.equal(scrape.of('model_gateway_retries_total').length, 0)
  assert.equal(scrape.of('gen_ai_server_time_to_first_token_count').length, 0, 'of streams only')
})

test('a stream: the time to its first byte; one that broke off has none and is interrupted', async (t) => {
  const half = Promise.withResolvers<ServerResponse>()
  const gateway = await observed(t, [
    async (res, _request, index) => {
      const events = chatEvents(['Hel', 'lo'])
      if (index === 0) return stream(res, events)
      await stream(res, events.slice(0, 2), { end: false })
      half.resolve(res)
    },
  ])
  assert.match(await (await gateway.post(CHAT, chatBody({ stream: true }))).text(), /\[DONE\]/)
  const broken = await gateway.post(CHAT, chatBody({ stream: true }))
  ;(await half.promise).destroy()
  await broken.text().catch(() => {})
  const scrape = await gateway.scrape()
  assert.equal(scrape.sum('gen_ai_server_time_to_first_token_count', ofChat), 1)
  const interrupted = { error_type: 'upstream_error', model_gateway_outcome: 'interrupted' }
  assert.equal(scrape.sum('model_gateway_calls_total', interrupted), 1)
})

test('refusals: by code; without a key no model is named', async (t) => {
  const gateway = await observed(t, [(res) => chatAnswer(res)], {
    config: { accounts: [{ id: 'acme', limits: { rpm: 1 } }] },
  })
  const statuses = [
    (await gateway.post(CHAT, chatBody(), { authorization: 'Bearer sk-wrong' })).status,
    (await gateway.post(CHAT, chatBody())).status,
    (await gateway.post(CHAT, chatBody())).status,
    (await gateway.post('/v1/nowhere', {})).status,
  ]
  assert.deepEqual(statuses, [401, 200, 429, 404])
  const scrape = await gateway.scrape()
  const refused = scrape.of('model_gateway_calls_total', { model_gateway_outcome: 'refused' })
  const told = refused.map(({ labels, value }) => [labels.error_type, labels.gen_ai_request_model, value])
  assert.deepEqual(told.toSorted(), [
    ['invalid_credential', undefined, 1],
    ['not_found', undefined, 1],
    ['rate_limited', 'chat', 1],
  ])
  assert.equal(
    scrape.sum('model_gateway_limit_refusals_total', {
      model_gateway_limit_kind: 'rpm',
      model_gateway_limit_level: 'account',
    }),
    1,
  )
  assert.equal(scrape.sum('gen_ai_server_request_duration_count', ofChat), 2, 'of the served and the refused')
  assert.equal(scrape.sum('gen_ai_client_operation_duration_count'), 1, 'no refused call was tried')
})

test('a failover: each attempt with its line and how it ended', async (t) => {
  const gateway = await observed(t, [(res) => answerJson(res, 503, {}), (res) => chatAnswer(res)])
  assert.equal((await gateway.post(CHAT, chatBody())).status, 200)
  const scrape = await gateway.scrape()
  const attempts = scrape
    .of('model_gateway_attempts_total')
    .map(({ labels, value }) => [labels.model_gateway_line, labels.model_gateway_outcome, value])
  assert.deepEqual(attempts.toSorted(), [
    ['line-0', 'upstream_overloaded', 1],
    ['line-1', 'completed', 1],
  ])
  const failed = { model_gateway_line: 'line-0' }
  assert.equal(scrape.sum('gen_ai_client_operation_duration_count', failed), 1)
  assert.equal(scrape.sum('model_gateway_retries_total', { gen_ai_request_model: 'chat' }), 1)
  assert.equal(scrape.sum('gen_ai_server_request_duration_count'), 1, 'once')
})

test('a line that a filter removes is counted with the reason', async (t) => {
  const gateway = await observed(t, [(res) => chatAnswer(res), (res) => chatAnswer(res)])
  await gateway.post(CHAT, chatBody({ provider: { only: ['provider-1'] } }))
  const scrape = await gateway.scrape()
  const removed = { model_gateway_line: 'line-0', model_gateway_reason: 'provider_constraint' }
  assert.equal(scrape.sum('model_gateway_eliminations_total', removed), 1)
})

test('an attempt that a clock ended names the clock', async (t) => {
  const upstream = await startUpstream(() => {})
  t.after(() => upstream.close())
  const gateway = await startObserved(t, { lines: [{ url: upstream.url, timeouts: { firstByteMs: 50 } }] })
  assert.equal((await gateway.post(CHAT, chatBody())).status, 504)
  const scrape = await gateway.scrape()
  const late = { model_gateway_outcome: 'upstream_timeout', model_gateway_timeout_phase: 'first_byte' }
  assert.equal(scrape.sum('model_gateway_attempts_total', late), 1)
})

test('calls with an Idempotency-Key are counted by outcome', async (t) => {
  let fails = true
  const gateway = await observed(t, [(res) => (fails ? answerJson(res, 500, {}) : chatAnswer(res))])
  const keyed = { 'idempotency-key': 'k1' }
  const statuses: number[] = []
  const send = async (body: object) => statuses.push((await gateway.post(CHAT, body, keyed)).status)
  await send(chatBody())
  fails = false
  await send(chatBody())
  await send(chatBody())
  await send(chatBody({ temperature: 1 }))
  assert.deepEqual(statuses, [502, 200, 409, 400])
  const scrape = await gateway.scrape()
  const outcomes = scrape
    .of('model_gateway_idempotency_total')
    .map(({ labels, value }) => [labels.model_gateway_outcome, value])
  assert.deepEqual(outcomes.toSorted(), [
    ['freed', 1],
    ['ran', 1],
    ['replayed', 1],
    ['reused', 1],
  ])
})

test('a caller who leaves: the call is open until it has ended, and then counted as theirs', async (t) => {
  const gateway = await observed(t, [
    (res) => stream(res, chatEvents(['Hel', 'lo']).slice(0, 2), { end: false }),
  ])
  const leaving = new AbortController()
  const response = await fetch(`${gateway.url}${CHAT}`, {
    method: 'POST',
    headers: { authorization: 'Bearer sk-observed', 'content-type': 'application/json' },
    body: JSON.stringify(chatBody({ stream: true })),
    signal: leaving.signal,
  })
  await response.body?.getReader().read()
  const meanwhile = new Scrape(await (await fetch(`${gateway.url}/metrics`)).text())
  assert.equal(meanwhile.sum('model_gateway_calls_open'), 1)
  assert.equal(meanwhile.sum('model_gateway_line_in_flight', { model_gateway_line: 'line-0' }), 1)
  leaving.abort()
  const scrape = await gateway.scrape()
  assert.equal(scrape.sum('model_gateway_calls_total', { error_type: 'client_closed_request' }), 1)
})
