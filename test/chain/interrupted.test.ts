import assert from 'node:assert/strict'
import { it } from 'node:test'
import type { RequestHandler, Response } from 'express'
import { callOf } from '../../lib/core/call/index.ts'
import {
  answer,
  eventsOf,
  MODES,
  type Mode,
  modeName,
  OPENAI,
  occurrences,
  STREAMS,
} from '../support/exchange.ts'
import { stream, type UpstreamScript } from '../support/scripted-upstream.ts'
import { until } from '../support/until.ts'
import { onEveryBackend } from './backends.ts'
import { ChainRun } from './chain-run.ts'

/** The events up to and with the first word. */
const firstWord = (mode: Mode): string[] =>
  eventsOf(mode, ['Hello']).slice(0, mode.protocol === 'openai' ? 2 : 4)

/** A handler between the limits and the routing that is wrong about the model "chat" only. */
const wrongWith =
  (fault: (res: Response) => void): RequestHandler =>
  (req, res, next) => {
    if (callOf(req).model === 'chat') fault(res)
    else next()
  }

onEveryBackend('a call that is interrupted', (fresh, modesOf) => {
  for (const mode of modesOf(0, STREAMS)) {
    it(`by its line behind output: its slot comes back, its key is used (${modeName(mode)})`, async (t) => {
      const run = await ChainRun.start(t, fresh(), {
        mode,
        script: (res) => {
          res.writeHead(200, { 'content-type': 'text/event-stream' })
          res.write(firstWord(mode).join(''), () => setTimeout(() => res.destroy(), 20))
        },
      })
      const broken = await run.exchange(run.body(), { key: run.key })
      assert.equal(broken.broken, true)
      assert.equal(occurrences(broken.text, 'Hello'), 1)
      await run.settled()
      await run.passes()
      const entry = await run.book(broken.requestId)
      await run.assertKeyUsed(run.body(), broken.requestId)
      await run.assertCounted()
      assert.deepEqual([entry.error_code, entry.outcome], ['upstream_error', 'interrupted'])
      assert.deepEqual([entry.limit, entry.original_request_id], [null, null])
      assert.deepEqual([entry.idempotency_key, entry.response_body], [run.key, broken.text])
      assert.ok(entry.usage && entry.usage.output_tokens > 0)
    })

    it(`by its caller behind output: its slot comes back, its key is used (${modeName(mode)})`, async (t) => {
      const run = await ChainRun.start(t, fresh(), {
        mode,
        script: (res) => stream(res, firstWord(mode), { end: false }),
      })
      const leaving = new AbortController()
      const response = await run.gateway.post(mode, run.body(), { key: run.key, signal: leaving.signal })
      const id = response.headers.get('x-request-id') ?? ''
      let seen = ''
      const reader = response.body?.getReader()
      while (!seen.includes('Hello')) seen += Buffer.from((await reader?.read())?.value ?? []).toString()
      leaving.abort()
      await run.settled()
      await run.passes()
      const entry = await run.book(id)
      // A record that is being completed while the caller is gone is "in use" until it is.
      await untilCompleted(run)
      await run.assertKeyUsed(run.body(), id)
      await run.assertCounted()
      assert.deepEqual([entry.error_code, entry.outcome], ['client_closed_request', 'interrupted'])
      assert.deepEqual([entry.limit, entry.original_request_id], [null, null])
      assert.equal(entry.idempotency_key, run.key)
      assert.ok(entry.response_body?.startsWith(seen))
      assert.ok(entry.usage && entry.usage.output_tokens > 0)
      assert.equal(entry.routing?.disconnect?.ended, 'aborted')
      await until(() => run.upstream.requests[0]?.cut === true, 'the cut upstream')
    })
  }

  for (const mode of modesOf(3, MODES)) {
    it(`by its caller before output: slot and key come back, it stays counted (${modeName(mode)})`, async (t) => {
      const run = await ChainRun.start(t, fresh(), { mode, script: () => {} })
      const id = await leaveWhenAsked(run)
      await run.settled()
      await keyComesFree(run)
      const entry = await run.book(id)
      await run.assertCounted()
      assert.deepEqual([entry.error_code, entry.outcome], ['client_closed_request', 'interrupted'])
      const { limit, idempotency_key, original_request_id, response_body, usage } = entry
      assert.deepEqual(
        { limit, idempotency_key, original_request_id, response_body, usage },
        {
          limit: null,
          idempotency_key: run.key,
          original_request_id: null,
          response_body: null,
          usage: null,
        },
      )
    })

    it(`by its caller, and drained: the slot is held meanwhile, the key is used (${modeName(mode)})`, async (t) => {
      const go = Promise.withResolvers<void>()
      const script: UpstreamScript = async (res) => {
        await go.promise
        await answer(res, mode)
      }
      const run = await ChainRun.start(t, fresh(), { mode, script, route: { onDisconnect: 'drain' } })
      const id = await leaveWhenAsked(run)
      const [open] = run.gateway.openCalls
      await until(() => open?.left === true, 'the gateway noticing')
      run.assertCode(await run.exchange(run.body({ model: 'spare' })), 'concurrency_limited', 429)
      go.resolve()
      await run.settled()
      await run.passes()
      const entry = await run.book(id)
      await untilCompleted(run)
      await run.assertKeyUsed(run.body(), id)
      await run.assertCounted()
      assert.equal(entry.outcome, 'interrupted')
      assert.match(entry.response_body ?? '', /Hello/)
      assert.equal(entry.idempotency_key, run.key)
      assert.equal(entry.routing?.disconnect?.ended, 'drained')
    })

    it(`by an exception in a later handler: slot and key come back, it stays counted (${modeName(mode)})`, async (t) => {
      const further = wrongWith(() => {
        throw new Error('unforeseen')
      })
      const run = await ChainRun.start(t, fresh(), { mode, further })
      const failed = await run.exchange(run.body(), { key: run.key })
      run.assertCode(failed, 'internal_error', 500)
      await run.assertKeyFree()
      const entry = await run.book(failed.requestId)
      await run.assertCounted()
      assert.equal(run.upstream.requests.length, 0)
      assert.equal(run.gateway.logger.lines.filter(({ level }) => level === 'error').length, 1)
      const { error_code, outcome, limit, idempotency_key, original_request_id, response_body } = entry
      assert.deepEqual(
        { error_code, outcome, limit, idempotency_key, original_request_id, response_body },
        {
          error_code: 'internal_error',
          outcome: 'failed',
          limit: null,
          idempotency_key: run.key,
          original_request_id: null,
          response_body: failed.text,
        },
      )
    })
  }

  it('by an exception in a later handler behind output: its slot comes back, its key is used', async (t) => {
    const further = wrongWith((res) => {
      res.type('text/plain').write('half an ans')
      throw new Error('unforeseen')
    })
    const run = await ChainRun.start(t, fresh(), { mode: OPENAI, further })
    const failed = await run.exchange(run.body(), { key: run.key })
    assert.deepEqual([failed.status, failed.broken], [200, true])
    await run.settled()
    await run.passes()
    const entry = await run.book(failed.requestId)
    await untilCompleted(run)
    await run.assertKeyUsed(run.body(), failed.requestId)
    await run.assertCounted()
    assert.deepEqual([entry.error_code, entry.outcome], ['internal_error', 'interrupted'])
    assert.equal(entry.response_body, 'half an ans')
  })
})

/** Makes a call with the run's key whose caller leaves once the line has it. Answers its request id. */
async function leaveWhenAsked(run: ChainRun): Promise<string> {
  const leaving = new AbortController()
  const call = run
    .exchange(run.body(), { key: run.key, signal: leaving.signal })
    .catch((error: Error) => assert.equal(error.name, 'AbortError'))
  await until(() => run.upstream.requests.length === 1, 'the request at the line')
  const [open] = run.gateway.openCalls
  assert.ok(open)
  leaving.abort()
  await call
  return open.id
}

/** A record may still be under way when the call's caller is gone: until it stands its key is in use. */
async function untilCompleted(run: ChainRun): Promise<void> {
  for (let tries = 0; tries < 1000; tries++) {
    const got = await run.exchange(run.body(), { key: run.key })
    if (got.headers.has('x-original-request-id')) return
    assert.equal(got.status, 409)
  }
  assert.fail('the record was not completed')
}

/** The key of a caller that left is freed behind its back: until that is done it is another content's. */
async function keyComesFree(run: ChainRun): Promise<void> {
  for (let tries = 0; tries < 1000; tries++) {
    const got = await run.exchange(run.body({ model: 'spare' }), { key: run.key })
    if (got.status === 200) {
      await run.book(got.requestId)
      return
    }
    assert.equal(got.headers.get('x-should-retry'), 'false', 'its slot was free at once')
  }
  assert.fail('the key was not freed')
}
