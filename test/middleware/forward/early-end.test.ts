import assert from 'node:assert/strict'
import { describe, it, type TestContext } from 'node:test'
import type { Call } from '../../../lib/core/call/index.ts'
import { GatewayError } from '../../../lib/core/errors/index.ts'
import { EarlyEnd } from '../../../lib/middleware/forward/early-end.ts'

const TOTAL_MS = 700

/** A call whose key a test can end. */
function running(t: TestContext, watched = true) {
  t.mock.timers.enable({ apis: ['setTimeout'] })
  let endKey: ((error: GatewayError) => void) | undefined
  const call = {
    keyWatch: watched
      ? {
          follow(followed: unknown, end: (error: GatewayError) => void) {
            assert.equal(followed, call)
            endKey = end
          },
        }
      : undefined,
  } as unknown as Call
  const early = new EarlyEnd(call, TOTAL_MS)
  return {
    early,
    endKey: (error: GatewayError) => endKey?.(error),
    pass: (ms: number) => t.mock.timers.tick(ms),
  }
}

describe('a call that must end before its answer has ended', () => {
  it('ends when its time is up, and not before', (t) => {
    const { early, pass } = running(t)
    pass(TOTAL_MS - 1)
    assert.deepEqual([early.signal.aborted, early.error], [false, undefined])
    pass(1)
    assert.equal(early.signal.aborted, true)
    assert.equal(early.error?.code, 'upstream_timeout')
    assert.equal(early.error, early.signal.reason)
  })

  it('ends with its key', (t) => {
    const { early, endKey, pass } = running(t)
    const disabled = new GatewayError('key_disabled')
    endKey(disabled)
    assert.equal(early.error, disabled)
    pass(TOTAL_MS)
    assert.equal(early.error, disabled, 'the first reason counts')
  })

  it('does not need a key that is watched', (t) => {
    const { early } = running(t, false)
    const left = new GatewayError('client_closed_request')
    early.end(left)
    assert.equal(early.error, left)
  })

  it('has no clock once it is over', (t) => {
    const { early, pass } = running(t)
    early.close()
    pass(2 * TOTAL_MS)
    assert.equal(early.error, undefined)
  })
})
