import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { withRetries } from '../../lib/client/index.ts'
import { answering, post, refusal } from './scripted-answers.ts'

const reason = new Error('the caller has had enough')
const busy = refusal(503, 'upstream_overloaded', { 'retry-after': '60' })
const replayed = refusal(409, 'idempotency_key_replayed', { 'x-original-request-id': 'req_0' })
const gone = refusal(404, 'not_found')

describe('an abort ends a call at once, with its own reason', () => {
  it('before anything is sent', async (t) => {
    const server = await answering(t, busy)
    const call = withRetries(fetch)(server.url, { ...post(), signal: AbortSignal.abort(reason) })
    await assert.rejects(call, reason)
    assert.equal(server.sent.length, 0)
  })

  it('while the answer is waited for', async (t) => {
    const controller = new AbortController()
    const server = await answering(t, () => controller.abort(reason))
    await assert.rejects(withRetries(fetch)(server.url, { ...post(), signal: controller.signal }), reason)
    assert.equal(server.sent.length, 1)
  })

  it('while the rest of a JSON answer is waited for', async (t) => {
    const controller = new AbortController()
    const server = await answering(t, (res) => {
      res.writeHead(200, { 'content-type': 'application/json' }).write('{', () => controller.abort(reason))
    })
    await assert.rejects(withRetries(fetch)(server.url, { ...post(), signal: controller.signal }), reason)
    assert.equal(server.sent.length, 1)
  })

  it('in the wait between two attempts', async (t) => {
    const controller = new AbortController()
    const server = await answering(t, busy)
    const onRetry = () => void setImmediate(() => controller.abort(reason))
    const call = withRetries(fetch, { onRetry })(server.url, { ...post(), signal: controller.signal })
    await assert.rejects(call, reason)
    assert.equal(server.sent.length, 1)
  })

  it('in the wait between two attempts, if the signal belongs to the Request', async (t) => {
    const controller = new AbortController()
    const server = await answering(t, busy)
    const onRetry = () => void setImmediate(() => controller.abort(reason))
    const request = new Request(server.url, { ...post(), signal: controller.signal })
    await assert.rejects(withRetries(fetch, { onRetry })(request), reason)
    assert.equal(server.sent.length, 1)
  })

  it('by the error with which onRetry throws or rejects', async (t) => {
    const server = await answering(t, busy)
    const throwing = (): never => {
      throw reason
    }
    for (const onRetry of [throwing, async () => throwing()])
      await assert.rejects(withRetries(fetch, { onRetry })(server.url, post()), reason)
    assert.equal(server.sent.length, 2)
  })

  it('while a body is read into memory', async (t) => {
    const controller = new AbortController()
    const server = await answering(t, busy)
    const body = new ReadableStream({ pull: () => controller.abort(reason) })
    const init = { method: 'POST', body, duplex: 'half', signal: controller.signal } as const
    await assert.rejects(withRetries(fetch, { bufferStreams: true })(server.url, init), reason)
    assert.equal(server.sent.length, 0)
  })

  it('while the call log is read, and between two reads of it', async (t) => {
    for (const atRead of [1, 2]) {
      const controller = new AbortController()
      const server = await answering(t, replayed, (res, sent) => {
        if (atRead === 1) controller.abort(reason)
        else {
          gone(res, sent)
          res.on('close', () => controller.abort(reason))
        }
      })
      const init = { ...post(), signal: controller.signal }
      await assert.rejects(withRetries(fetch, { firstDelayMs: 60_000 })(`${server.url}/v1/x`, init), reason)
      assert.equal(server.sent.length, 2)
    }
  })

  it('and leaves no listener on a signal that remains in use', async (t) => {
    const controller = new AbortController()
    let listeners = 0
    const { signal } = controller
    t.mock.method(signal, 'addEventListener', () => void listeners++)
    t.mock.method(signal, 'removeEventListener', () => void listeners--)
    const server = await answering(t, refusal(502, 'upstream_error'))
    const counting: typeof fetch = (input, init) => fetch(input, { ...init, signal: null })
    await withRetries(counting, { firstDelayMs: 1 })(server.url, { ...post(), signal })
    assert.equal(server.sent.length, 4)
    assert.equal(listeners, 0)
  })
})
