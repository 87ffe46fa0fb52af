import assert from 'node:assert/strict'
import { it } from 'node:test'
import { MODES, modeName, STREAMS } from '../support/exchange.ts'
import { KEY } from '../support/gateway.ts'
import { onEveryBackend } from './backends.ts'
import { ChainRun, remaining, SIBLING_KEY } from './chain-run.ts'
import { heldStream } from './held-stream.ts'

/** Tokens that one short chat fits into and two do not: its estimate is between 8 and 14. */
const ONE_CHAT = 15

/** A limit that lets one call through in a window. */
const WINDOWS = [
  { kind: 'rpm', level: 'key', subject: 'key_acme', limits: { key: { rpm: 1 } }, most: 1 },
  { kind: 'rpm', level: 'account', subject: 'acme', limits: { account: { rpm: 1 } }, most: 1 },
  { kind: 'tpm', level: 'key', subject: 'key_acme', limits: { key: { tpm: ONE_CHAT } }, most: ONE_CHAT },
  {
    kind: 'tpm',
    level: 'account',
    subject: 'acme',
    limits: { account: { tpm: ONE_CHAT } },
    most: ONE_CHAT,
  },
] as const

onEveryBackend('a request refused by a limit takes nothing', (fresh, modesOf) => {
  for (const [i, { kind, level, subject, limits, most }] of WINDOWS.entries()) {
    for (const mode of modesOf(i, MODES)) {
      it(`${kind} of the ${level}: its Idempotency-Key is free (${modeName(mode)})`, async (t) => {
        const run = await ChainRun.start(t, fresh(), { mode, limits })
        const first = await run.passes()
        // The same key is sent twice: the limit refuses the second call again, and the first call is not mentioned.
        for (let i = 0; i < 2; i++) {
          const refused = await run.exchange(run.body(), { key: run.key })
          run.assertCode(refused, 'rate_limited', 429)
          assert.deepEqual(
            remaining(mode, refused.headers)[kind === 'rpm' ? 'requests' : 'tokens'],
            remaining(mode, first.headers)[kind === 'rpm' ? 'requests' : 'tokens'],
          )
          const entry = await run.gateway.entry(refused.requestId)
          const { retry_after } = entry.limit ?? {}
          assert.equal(String(retry_after), refused.headers.get('retry-after'))
          assert.deepEqual(entry.limit, { kind, level, subject, limit: most, retry_after })
          assert.equal(entry.outcome, 'refused')
          assert.equal(entry.idempotency_key, run.key)
          assert.equal(entry.original_request_id, null)
          assert.equal(entry.response_body, refused.text)
          assert.equal(entry.routing, null)
        }
        assert.equal(run.upstream.requests.length, 0)
        // At the level that did not refuse, nothing was counted either: the other key of the account still fits there.
        if (level === 'key') {
          const sibling = await run.passes({ secret: SIBLING_KEY, key: run.key })
          const { estimated_input_tokens: tokens = 0 } =
            (await run.gateway.entry(sibling.requestId)).request ?? {}
          assert.deepEqual(remaining(mode, sibling.headers), { requests: 98, tokens: 10_000 - 2 * tokens })
        }
      })
    }
  }

  for (const mode of modesOf(1, STREAMS)) {
    it(`concurrency of the account: nothing is counted, and the key runs later (${modeName(mode)})`, async (t) => {
      const { script, go } = heldStream(mode)
      const run = await ChainRun.start(t, fresh(), { mode, script })
      const running = await run.gateway.post(mode, run.body())
      for (const secret of [KEY, SIBLING_KEY, KEY]) {
        const refused = await run.exchange(run.body(), { key: run.key, secret })
        run.assertCode(refused, 'concurrency_limited', 429)
        const { limit, idempotency_key, original_request_id, response_body, routing } =
          await run.gateway.entry(refused.requestId)
        assert.deepEqual(limit, {
          kind: 'concurrency',
          level: 'account',
          subject: 'acme',
          limit: 1,
          retry_after: 1,
        })
        assert.equal(idempotency_key, run.key)
        assert.deepEqual([original_request_id, response_body, routing], [null, refused.text, null])
      }
      assert.equal(run.upstream.requests.length, 1)
      go()
      await running.text()
      await run.book(running.headers.get('x-request-id') ?? '')
      await run.assertKeyFree()
      await run.assertCounted()
    })
  }

  it('a request larger than the whole limit: its key is free, and a smaller one gets through', async (t) => {
    const mode = MODES[0]
    assert.ok(mode)
    const run = await ChainRun.start(t, fresh(), { mode, limits: { key: { tpm: 100 } } })
    const messages = [{ role: 'user', content: 'many words '.repeat(200) }]
    const refused = await run.exchange(run.body({ messages }), { key: run.key })
    run.assertCode(refused, 'rate_limited', 429)
    assert.equal(refused.headers.get('x-should-retry'), 'false')
    const { limit } = await run.gateway.entry(refused.requestId)
    assert.deepEqual(limit, { kind: 'tpm', level: 'key', subject: 'key_acme', limit: 100, retry_after: 60 })
    const passed = await run.passes({ key: run.key })
    const { estimated_input_tokens: tokens = 0 } = (await run.gateway.entry(passed.requestId)).request ?? {}
    assert.deepEqual(remaining(mode, passed.headers), { requests: 49, tokens: 100 - tokens })
  })
})
