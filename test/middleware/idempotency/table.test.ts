import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { GatewayError } from '../../../lib/core/errors/index.ts'
import { MemoryIdempotencyStore } from '../../../lib/middleware/idempotency/index.ts'
import { rawClient } from '../../support/app-server.ts'
import type { Exchange } from '../../support/exchange.ts'
import { chatBody, KEY } from '../../support/gateway.ts'
import { answerJson, chatAnswer, chatEvents, startUpstream, stream } from '../../support/scripted-upstream.ts'
import { until } from '../../support/until.ts'
import { CHAT, keyedGateway, OTHER_KEY } from './keyed-gateway.ts'

function assertRefused(got: Exchange, status: number, code: string, shouldRetry: string): void {
  assert.equal(got.status, status)
  assert.equal(got.errorCode, code)
  assert.equal(got.envelope().error.type, 'invalid_request_error')
  assert.equal(got.envelope().request_id, got.requestId)
  assert.equal(got.headers.get('x-should-retry'), shouldRetry)
}

class SlowToRelease extends MemoryIdempotencyStore {
  override async release(claim: Parameters<MemoryIdempotencyStore['release']>[0]): Promise<void> {
    await sleep(10)
    return super.release(claim)
  }
}

describe('a second request with the same Idempotency-Key', () => {
  it('gets idempotency_key_in_use while the first runs, and how long to wait', async (t) => {
    let finish = () => {}
    const upstream = await startUpstream((res) => {
      finish = () => chatAnswer(res)
    })
    t.after(() => upstream.close())
    const gateway = await keyedGateway(t, { lines: [upstream.url] })
    const first = gateway.exchange('k')
    await until(() => upstream.requests.length === 1, 'the first request')
    const second = await gateway.exchange('k')
    assertRefused(second, 409, 'idempotency_key_in_use', 'true')
    assert.ok(Number(second.headers.get('retry-after')) >= 1)
    assert.equal('details' in second.envelope().error, false)
    const changed = await gateway.exchange('k', chatBody({ temperature: 1 }))
    assertRefused(changed, 400, 'idempotency_key_reused', 'false')
    finish()
    const { status, requestId } = await first
    assert.equal(status, 200)
    assert.equal(upstream.requests.length, 1)
    const entry = await gateway.entry(second.requestId)
    assert.deepEqual(
      [entry.idempotency_key, entry.original_request_id, entry.outcome, entry.routing],
      ['k', requestId, 'refused', null],
    )
  })

  for (const streamed of [false, true]) {
    it(`gets idempotency_key_replayed once the first has answered (${streamed ? 'streamed' : 'plain'})`, async (t) => {
      const upstream = await startUpstream((res) =>
        streamed ? stream(res, chatEvents(['Hel', 'lo – 你好'])) : chatAnswer(res, 'Hello – 你好'),
      )
      t.after(() => upstream.close())
      const gateway = await keyedGateway(t, { lines: [upstream.url] })
      const body = chatBody({ stream: streamed })
      const first = await gateway.exchange('k', body)
      assert.equal(first.status, 200)
      const second = await gateway.exchange('k', body)
      assertRefused(second, 409, 'idempotency_key_replayed', 'false')
      assert.deepEqual(second.envelope().error.details, { original_request_id: first.requestId })
      assert.equal(second.headers.get('x-original-request-id'), first.requestId)
      assert.equal(second.headers.get('retry-after'), null)
      const changed = await gateway.exchange('k', { ...body, temperature: 1 })
      assertRefused(changed, 400, 'idempotency_key_reused', 'false')
      assert.equal('details' in changed.envelope().error, false)
      assert.equal(upstream.requests.length, 1)

      const original = await gateway.entry(first.requestId)
      assert.equal(original.idempotency_key, 'k')
      assert.equal(original.original_request_id, null)
      assert.equal(original.response_body, first.text, 'the body that the caller got is in the call log')
      const replay = await gateway.entry(second.requestId)
      assert.deepEqual(
        [replay.original_request_id, replay.error_code, replay.usage, replay.response_body],
        [first.requestId, 'idempotency_key_replayed', null, null],
      )
    })
  }

  it('runs as if new after one that the upstream failed with nothing produced', async (t) => {
    const upstream = await startUpstream((res, _request, i) =>
      i === 0 ? answerJson(res, 500, { error: { message: 'no' } }) : chatAnswer(res),
    )
    t.after(() => upstream.close())
    const gateway = await keyedGateway(t, { lines: [upstream.url] })
    assert.equal((await gateway.exchange('k')).status, 502)
    // Other content, too: a failed call has used nothing up.
    const second = await gateway.exchange('k', chatBody({ temperature: 1 }))
    assert.equal(second.status, 200)
    assert.equal(upstream.requests.length, 2)
  })

  it('runs as if new right after one that was refused further down, on the same instant', async (t) => {
    const upstream = await startUpstream()
    t.after(() => upstream.close())
    let refusals = 20
    const gateway = await keyedGateway(t, {
      lines: [upstream.url],
      idempotency: { store: new SlowToRelease() },
      further: (_req, _res, next) =>
        next(refusals-- > 0 ? new GatewayError(refusals % 2 ? 'rate_limited' : 'internal_error') : undefined),
    })
    for (let i = 0; i < 20; i++) {
      const refused = await gateway.exchange('k')
      assert.notEqual(refused.status, 409, `attempt ${i}`)
      assert.equal(upstream.requests.length, 0)
    }
    assert.equal((await gateway.exchange('k')).status, 200)
  })

  it('is another key for another account', async (t) => {
    const upstream = await startUpstream()
    t.after(() => upstream.close())
    const gateway = await keyedGateway(t, { lines: [upstream.url] })
    const other = { headers: { authorization: `Bearer ${OTHER_KEY}` } }
    assert.equal((await gateway.exchange('k')).status, 200)
    assert.equal((await gateway.exchange('k', chatBody(), other)).status, 200)
    assert.equal((await gateway.exchange('k', chatBody(), other)).status, 409)
    assert.equal(upstream.requests.length, 2)
  })

  it('is the same request whatever the order of its members and its white space', async (t) => {
    const upstream = await startUpstream()
    t.after(() => upstream.close())
    const gateway = await keyedGateway(t, { lines: [upstream.url] })
    const one = '{"model":"chat","temperature":1.0,"messages":[{"role":"user","content":"hé"}]}'
    const same =
      ' { "messages" : [ { "content":"h\\u00e9" , "role":"user" } ],\n"temperature":1,"model":"chat" } '
    assert.equal((await gateway.exchange('k', one)).status, 200)
    assert.equal((await gateway.exchange('k', same)).errorCode, 'idempotency_key_replayed')
  })
})

describe('the Idempotency-Key', () => {
  it('may hold 255 printable characters and nothing else', async (t) => {
    const upstream = await startUpstream()
    t.after(() => upstream.close())
    const gateway = await keyedGateway(t, { lines: [upstream.url] })
    for (const key of ['', 'x'.repeat(256), 'a\tb', 'caf\u00e9']) {
      const got = await gateway.exchange(key)
      assert.equal(got.status, 400, JSON.stringify(key))
      assert.equal(got.errorCode, 'invalid_request')
      assert.equal(got.envelope().error.param, 'Idempotency-Key')
    }
    const headers = `Host: x\r\nAuthorization: Bearer ${KEY}\r\nIdempotency-Key: a\r\nIdempotency-Key: b\r\n`
    const body = JSON.stringify(chatBody())
    const twice = rawClient(
      Number(new URL(gateway.url).port),
      `POST ${CHAT} HTTP/1.1\r\n${headers}Content-Length: ${body.length}\r\nConnection: close\r\n\r\n${body}`,
    )
    assert.match(await twice.end(), /^HTTP\/1.1 400 .*"param":"Idempotency-Key"/s)
    assert.equal(upstream.requests.length, 0)
    assert.equal((await gateway.exchange(`~ ${'x'.repeat(253)}`)).status, 200)
  })

  it('is not needed: a request without one never touches the store', async (t) => {
    const upstream = await startUpstream()
    t.after(() => upstream.close())
    const touched = new Proxy(new MemoryIdempotencyStore(), {
      get(target, name) {
        if (name === 'claim') return target.claim
        throw new Error(`touched: ${String(name)}`)
      },
    })
    const gateway = await keyedGateway(t, { lines: [upstream.url], idempotency: { store: touched } })
    for (let i = 0; i < 3; i++) assert.equal((await gateway.exchange(undefined)).status, 200)
    assert.equal(upstream.requests.length, 3)
    const got = await gateway.exchange('k')
    assert.equal(got.status, 500, 'the trap works')
  })

  it('has its refusals worded for the Anthropic-style protocol, too', async (t) => {
    const upstream = await startUpstream()
    t.after(() => upstream.close())
    const gateway = await keyedGateway(t, {
      lines: [upstream.url],
      line: { protocol: 'anthropic' },
    })
    upstream.script = (res) =>
      answerJson(res, 200, {
        id: 'msg_1',
        type: 'message',
        role: 'assistant',
        content: [{ type: 'text', text: 'Hello' }],
        stop_reason: 'end_turn',
        usage: { input_tokens: 1, output_tokens: 1 },
      })
    const ask = () =>
      fetch(`${gateway.url}/v1/messages`, {
        method: 'POST',
        headers: {
          'x-api-key': 'sk-test-1',
          'content-type': 'application/json',
          'idempotency-key': 'k',
        },
        body: JSON.stringify(chatBody({ max_tokens: 9 })),
      })
    const first = await ask()
    assert.equal(first.status, 200)
    await first.text()
    const second = await ask()
    assert.equal(second.status, 409)
    assert.equal(second.headers.get('x-original-request-id'), first.headers.get('x-request-id'))
    const body = (await second.json()) as { type: string; error: { type: string } }
    assert.deepEqual([body.type, body.error.type], ['error', 'invalid_request_error'])
  })
})
