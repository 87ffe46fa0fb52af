import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import type { CallLogEntry } from '../../lib/middleware/call-log/index.ts'
import { answer, MODES, type Mode, modeName, STREAMS } from '../support/exchange.ts'
import { onEveryBackend } from './backends.ts'
import { ChainRun, remaining } from './chain-run.ts'
import { heldStream } from './held-stream.ts'

/** A request that is refused before anything was taken. */
interface EarlyRefusal {
  readonly name: string
  readonly code: string
  readonly status: number
  readonly secret?: string
  readonly body: (body: Record<string, unknown>) => unknown
}

const EARLY: readonly EarlyRefusal[] = [
  {
    name: 'authenticate: invalid_credential',
    code: 'invalid_credential',
    status: 401,
    secret: 'sk-nobody',
    body: (body) => body,
  },
  {
    name: 'readRequest: invalid_request',
    code: 'invalid_request',
    status: 400,
    body: (body) => ({ ...body, messages: 'hi' }),
  },
  {
    name: 'readRequest: broken JSON',
    code: 'invalid_request',
    status: 400,
    body: () => '{"model":',
  },
  {
    name: 'readRequest: model_not_found',
    code: 'model_not_found',
    status: 404,
    body: (body) => ({ ...body, model: 'nobody' }),
  },
  {
    name: 'readRequest: context_too_long for every line',
    code: 'context_too_long',
    status: 400,
    body: (body) => ({ ...body, max_tokens: 5000 }),
  },
]

const NOTHING_KEPT = {
  limit: null,
  idempotency_key: null,
  original_request_id: null,
  response_body: null,
  routing: null,
  usage: null,
}

const pick = (entry: CallLogEntry, like: object) =>
  Object.fromEntries(Object.keys(like).map((name) => [name, entry[name as keyof CallLogEntry]]))

onEveryBackend('a request refused before the limits takes nothing', (fresh, modesOf) => {
  for (const [i, { name, code, status, secret, body }] of EARLY.entries()) {
    for (const mode of modesOf(i, MODES)) {
      it(`${name} (${modeName(mode)})`, async (t) => {
        const run = await ChainRun.start(t, fresh(), { mode, line: { contextWindow: 4000 } })
        const refused = await run.exchange(body(run.body()), {
          key: run.key,
          ...(secret !== undefined && { secret }),
        })
        run.assertCode(refused, code, status)
        assert.deepEqual(remaining(mode, refused.headers), { requests: null, tokens: null })
        assert.equal(run.upstream.requests.length, 0)
        await run.assertKeyFree()
        await run.assertCounted()
        const entry = await run.gateway.entry(refused.requestId)
        assert.equal(entry.error_code, code)
        assert.equal(entry.outcome, 'refused')
        assert.deepEqual(pick(entry, NOTHING_KEPT), NOTHING_KEPT)
      })
    }
  }

  describe('by idempotency', () => {
    for (const mode of modesOf(1, MODES)) {
      it(`replayed and reused behind an answer (${modeName(mode)})`, async (t) => {
        const run = await ChainRun.start(t, fresh(), { mode })
        const first = await run.exchange(run.body(), { key: run.key })
        assert.equal(first.status, 200)
        await run.book(first.requestId)
        await run.assertKeyUsed(run.body(), first.requestId)
        await run.assertCounted()
        const { response_body, idempotency_key } = await run.gateway.entry(first.requestId)
        assert.deepEqual([response_body, idempotency_key], [first.text, run.key])
      })
    }

    for (const mode of modesOf(0, STREAMS)) {
      // The one slot is taken meanwhile: a claim is looked at first, so neither of them is a 429.
      it(`in use and reused while the first one streams (${modeName(mode)})`, async (t) => {
        await whileRunning(t, mode, async (run, original) => {
          const again = await run.exchange(run.body(), { key: run.key })
          run.assertCode(again, 'idempotency_key_in_use', 409)
          const other = await run.exchange(run.body({ model: 'spare' }), { key: run.key })
          run.assertCode(other, 'idempotency_key_reused', 400)
          for (const { headers, requestId } of [again, other]) {
            assert.deepEqual(remaining(mode, headers), { requests: null, tokens: null })
            const { limit, idempotency_key, original_request_id, response_body } =
              await run.gateway.entry(requestId)
            assert.deepEqual(
              { limit, idempotency_key, original_request_id, response_body },
              { limit: null, idempotency_key: run.key, original_request_id: original, response_body: null },
            )
          }
          assert.equal(run.upstream.requests.length, 1)
        })
      })
    }
  })

  /** Runs `during` in the middle of a stream with the run's key; then the stream ends as if nothing had been. */
  async function whileRunning(
    t: Parameters<typeof ChainRun.start>[0],
    mode: Mode,
    during: (run: ChainRun, original: string) => Promise<void>,
  ): Promise<void> {
    const { script, go } = heldStream(mode)
    const run = await ChainRun.start(t, fresh(), { mode, script })
    const first = await run.gateway.post(mode, run.body(), { key: run.key })
    const original = first.headers.get('x-request-id') ?? ''
    await during(run, original)
    go()
    const text = await first.text()
    await run.book(original)
    run.upstream.script = (res) => answer(res, mode)
    await run.assertKeyUsed(run.body(), original)
    await run.assertCounted()
    assert.equal((await run.gateway.entry(original)).response_body, text)
  }
})
