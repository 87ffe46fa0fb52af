import assert from 'node:assert/strict'
import { getEventListeners } from 'node:events'
import { describe, it } from 'node:test'
import { heldBodyBytes, receiveBody } from '../../../lib/core/memory/index.ts'
import { callOfKey, type SentRequest, sentRequest } from '../../middleware/forward/support/sent-body.ts'

describe('a body that is received whole', () => {
  const LIMIT = 3000
  const CHUNKED = { 'transfer-encoding': 'chunked' }

  function receiving(headers: Record<string, string> = CHUNKED, perKey = 2 * LIMIT) {
    const req = sentRequest(headers)
    const leaving = new AbortController()
    const budget = { perKey, perProcess: 10 * LIMIT }
    const bounds = { bodyLimitBytes: LIMIT, budget }
    const receive = async () => {
      const { bytes, held } = await receiveBody(callOfKey(), req, bounds, leaving.signal)
      held?.release()
      return bytes
    }
    return { req, leaving, receive }
  }

  /** Sends a piece, and waits until it has been read. */
  async function send(req: SentRequest, bytes: number): Promise<void> {
    req.write(Buffer.alloc(bytes, 'x'))
    await new Promise(setImmediate)
  }

  /** Nothing of a body is held or listened to any more. */
  function assertLeft({ req, leaving }: { req: SentRequest; leaving: AbortController }): void {
    assert.equal(heldBodyBytes(), 0)
    for (const event of ['data', 'end', 'error', 'close'])
      assert.equal(req.listenerCount(event), 0, `${event} is not listened to`)
    assert.deepEqual(getEventListeners(leaving.signal, 'abort'), [])
  }

  it('equals the received bytes, up to its limit', async () => {
    for (const pieces of [[1], [LIMIT], [1, 2, LIMIT - 3], []]) {
      const { req, leaving, receive } = receiving()
      const received = receive()
      for (const bytes of pieces) await send(req, bytes)
      req.end()
      const whole = await received
      const size = pieces.reduce((sum, bytes) => sum + bytes, 0)
      assert.deepEqual(whole, Buffer.alloc(size, 'x'))
      assertLeft({ req, leaving })
    }
  })

  it('takes the memory of the received bytes until it is complete', async () => {
    for (const headers of [{ 'content-length': '900' }, CHUNKED]) {
      const { req, leaving, receive } = receiving(headers)
      const received = receive()
      await send(req, 500)
      assert.equal(heldBodyBytes(), 500)
      await send(req, 400)
      req.end()
      assert.equal((await received).length, 900)
      assertLeft({ req, leaving })
    }
  })

  it('is refused as soon as it is too large, and read no further', async () => {
    const { req, leaving, receive } = receiving()
    const received = receive()
    await send(req, LIMIT)
    assert.ok(heldBodyBytes() > 0)
    req.write('x')
    await assert.rejects(received, { code: 'request_too_large' })
    assertLeft({ req, leaving })
    assert.equal(req.isPaused(), true)
  })

  it('is refused unread if its head declares a length that is too large', async () => {
    const { req, leaving, receive } = receiving({ 'content-length': String(LIMIT + 1) })
    await assert.rejects(receive(), { code: 'request_too_large' })
    assertLeft({ req, leaving })
    const exact = receiving({ 'content-length': String(LIMIT) })
    const received = exact.receive()
    await send(exact.req, LIMIT)
    exact.req.end()
    assert.equal((await received).length, LIMIT)
  })

  it('is refused if its key has no memory left', async () => {
    const { req, leaving, receive } = receiving(CHUNKED, 1500)
    const received = receive()
    await send(req, 1000)
    req.write(Buffer.alloc(1000))
    await assert.rejects(received, { code: 'concurrency_limited' })
    assertLeft({ req, leaving })
  })

  it('ends when its call must end, before or during the body', async () => {
    const reason = new Error('the key has ended')
    const before = receiving()
    before.leaving.abort(reason)
    await assert.rejects(before.receive(), reason)
    assertLeft(before)
    const { req, leaving, receive } = receiving()
    const received = receive()
    await send(req, 100)
    leaving.abort(reason)
    await assert.rejects(received, reason)
    assertLeft({ req, leaving })
    assert.equal(req.isPaused(), true)
  })

  it('is rejected if the caller leaves before or during the body', async () => {
    const cause = new Error('reset')
    for (const how of [undefined, cause]) {
      const { req, leaving, receive } = receiving()
      const received = receive()
      await send(req, 100)
      req.destroy(how)
      await assert.rejects(received, (error: Error & { code: string }) => {
        assert.deepEqual([error.code, error.cause], ['client_closed_request', how])
        return true
      })
      assertLeft({ req, leaving })
    }
    const { req, leaving, receive } = receiving()
    req.destroy()
    await new Promise(setImmediate)
    await assert.rejects(receive(), { code: 'client_closed_request' })
    assertLeft({ req, leaving })
  })
})
