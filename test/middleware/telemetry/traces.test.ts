import assert from 'node:assert/strict'
import { test } from 'node:test'
import { chatBody } from '../../support/gateway.ts'
import { answerJson, chatAnswer, startUpstream } from '../../support/scripted-upstream.ts'
import { type CollectedSpan, startCollector } from './collector.ts'
import { startObserved } from './observed-gateway.ts'

const CHAT = '/v1/chat/completions'
const TRACE = '0af7651916cd43dd8448eb211c80319c'
const PARENT = 'b7ad6b7169203331'
const SERVER = 2
const CLIENT = 3
const ERROR = 2

const sampled = { traceparent: `00-${TRACE}-${PARENT}-01` }
const notSampled = { traceparent: `00-${TRACE}-${PARENT}-00` }

const ofKind = (spans: readonly CollectedSpan[], kind: number) => spans.filter((span) => span.kind === kind)
const timesOf = (span: CollectedSpan) => [BigInt(span.startTimeUnixNano), BigInt(span.endTimeUnixNano)]

test('a call goes on from its caller, and its attempts and its settling from it', async (t) => {
  const collector = await startCollector(t)
  const failing = await startUpstream((res) => answerJson(res, 503, {}))
  const serving = await startUpstream((res) => chatAnswer(res))
  t.after(() => Promise.all([failing.close(), serving.close()]))
  const gateway = await startObserved(t, {
    lines: [{ url: failing.url }, { url: serving.url }],
    collector: collector.url,
  })
  const response = await gateway.post(CHAT, chatBody(), sampled)
  await gateway.scrape()
  await gateway.flush()

  const [server, ...others] = ofKind(collector.spans, SERVER)
  assert.ok(server && others.length === 0, 'one span of the call')
  assert.deepEqual([server.traceId, server.parentSpanId], [TRACE, PARENT])
  assert.equal(server.name, `POST ${CHAT}`)
  const { attributes } = server
  assert.equal(attributes['model_gateway.request_id'], response.headers.get('x-request-id'))
  assert.equal(attributes['http.response.status_code'], 200)
  assert.equal(attributes['gen_ai.operation.name'], 'chat')
  assert.equal(attributes['gen_ai.request.model'], 'chat')
  assert.equal(attributes['gen_ai.usage.output_tokens'], 3)

  const attempts = ofKind(collector.spans, CLIENT)
  const told = attempts.map((span) => [
    span.name,
    span.attributes['model_gateway.line'],
    span.attributes['gen_ai.provider.name'],
    span.attributes['http.response.status_code'],
    span.attributes['error.type'],
  ])
  assert.deepEqual(told, [
    ['chat upstream-chat-0', 'line-0', 'provider-0', 503, 'upstream_overloaded'],
    ['chat upstream-chat-1', 'line-1', 'provider-1', 200, undefined],
  ])
  const settle = collector.spans.filter(({ name }) => name === 'settle')
  assert.equal(settle.length, 1)
  const [begin, end] = timesOf(server)
  for (const span of [...attempts, ...settle]) {
    assert.deepEqual([span.traceId, span.parentSpanId], [TRACE, server.spanId], span.name)
    const [from, to] = timesOf(span)
    assert.ok(begin && end && from && to && begin <= from && from <= to, span.name)
  }

  for (const upstream of [failing, serving]) {
    const [request] = upstream.requests
    assert.ok(request)
    assert.deepEqual(
      Object.keys(request.headers).filter((name) => /trace|baggage/.test(name)),
      [],
      'lines receive no trace headers',
    )
  }
  assert.ok(collector.metrics.has('gen_ai.server.request.duration'), 'metrics are sent there, too')
})

test('a failed call is an error, a refused one is not, and neither has a parent', async (t) => {
  const collector = await startCollector(t)
  const upstream = await startUpstream((res) => answerJson(res, 500, {}))
  t.after(() => upstream.close())
  const gateway = await startObserved(t, { lines: [{ url: upstream.url }], collector: collector.url })
  await gateway.post(CHAT, chatBody())
  await gateway.post(CHAT, chatBody(), { authorization: 'Bearer sk-wrong' })
  await gateway.scrape()
  await gateway.flush()
  const told = ofKind(collector.spans, SERVER).map(({ name, status, attributes, parentSpanId }) => [
    name,
    attributes['error.type'],
    status.code,
    parentSpanId ?? '',
  ])
  assert.deepEqual(told, [
    [`POST ${CHAT}`, 'upstream_error', ERROR, ''],
    ['POST', 'invalid_credential', 0, ''],
  ])
})

test('a trace that the caller does not sample is not sent', async (t) => {
  const collector = await startCollector(t)
  const upstream = await startUpstream((res) => chatAnswer(res))
  t.after(() => upstream.close())
  const gateway = await startObserved(t, { lines: [{ url: upstream.url }], collector: collector.url })
  assert.equal((await gateway.post(CHAT, chatBody(), notSampled)).status, 200)
  await gateway.scrape()
  await gateway.flush()
  assert.deepEqual(collector.spans, [])
  assert.ok(collector.metrics.has('model_gateway.calls'), 'it is counted all the same')
})

test('of the share that is traced, and of no other calls, there are spans; a malformed traceparent is none', async (t) => {
  const collector = await startCollector(t)
  const upstream = await startUpstream((res) => chatAnswer(res))
  t.after(() => upstream.close())
  const gateway = await startObserved(t, {
    lines: [{ url: upstream.url }],
    collector: collector.url,
    traces: { sampler: undefined, share: 0 },
  })
  await gateway.post(CHAT, chatBody())
  await gateway.post(CHAT, chatBody(), { traceparent: `00-${'0'.repeat(32)}-${PARENT}-01` })
  await gateway.post(CHAT, chatBody(), sampled)
  await gateway.scrape()
  await gateway.flush()
  assert.deepEqual([...new Set(collector.spans.map(({ traceId }) => traceId))], [TRACE])
})

test('a sampler that is asked for decides, as OpenTelemetry defines it', async (t) => {
  const collector = await startCollector(t)
  const upstream = await startUpstream((res) => chatAnswer(res))
  t.after(() => upstream.close())
  const gateway = await startObserved(t, {
    lines: [{ url: upstream.url }],
    collector: collector.url,
    traces: { sampler: 'traceidratio', share: 1 },
  })
  await gateway.post(CHAT, chatBody(), notSampled)
  await gateway.scrape()
  await gateway.flush()
  assert.deepEqual([...new Set(collector.spans.map(({ traceId }) => traceId))], [TRACE])
})

test('callers who have every call traced get no more than a hundred traces a second', async (t) => {
  const collector = await startCollector(t)
  const upstream = await startUpstream((res) => chatAnswer(res))
  t.after(() => upstream.close())
  const gateway = await startObserved(t, { lines: [{ url: upstream.url }], collector: collector.url })
  const began = performance.now()
  const calls = 250
  for (let sent = 0; sent < calls; sent += 25)
    await Promise.all(
      Array.from({ length: 25 }, async () => (await gateway.post(CHAT, chatBody(), sampled)).text()),
    )
  const scrape = await gateway.scrape()
  const seconds = Math.floor((performance.now() - began) / 1000) + 2
  await gateway.flush()
  assert.equal(scrape.sum('model_gateway_calls_total'), calls)
  const traced = ofKind(collector.spans, SERVER).length
  assert.ok(traced >= 100 && traced <= 100 * seconds, `${traced} in ${seconds} s`)
})
