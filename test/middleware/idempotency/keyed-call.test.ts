import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { GatewayError } from '../../../lib/core/errors/index.ts'
import { HANDLER_MS, keyedCall, USAGE } from './keyed-calls.ts'

const FAULT = new GatewayError('internal_error')
const refusal = (code: string) => (error: unknown) => error instanceof GatewayError && error.code === code

describe('the end of an answer to a call with a key', () => {
  it('waits until a success is recorded', async () => {
    const { keyed, log, held } = keyedCall()
    await (keyed.beforeEnd() ?? assert.fail('it waits for nothing'))
    assert.deepEqual([log, held.state], [['complete'], 'completed'])
    assert.equal(keyed.beforeEnd(), undefined, 'once')
    assert.deepEqual(log, ['complete'])
  })

  it('is not given where the key was lost, or nobody knows', async () => {
    const lost = keyedCall({ kept: false })
    await assert.rejects(Promise.resolve(lost.keyed.beforeEnd()), refusal('idempotency_key_in_use'))
    const silent = keyedCall({ kept: new Error('away') })
    await assert.rejects(Promise.resolve(silent.keyed.beforeEnd()), refusal('internal_error'))
    const late = keyedCall()
    const waiting = late.keyed.beforeEnd()
    late.may.send = false
    await assert.rejects(Promise.resolve(waiting), refusal('idempotency_key_in_use'))
  })

  it('waits for nothing where a ledger has recorded it, unless the key was lost meanwhile', () => {
    const { keyed, log } = keyedCall({ completesHere: false })
    assert.equal(keyed.beforeEnd(), undefined)
    assert.deepEqual(log, [])
    const lost = keyedCall({ completesHere: false, maySend: false })
    assert.throws(() => lost.keyed.beforeEnd(), refusal('idempotency_key_in_use'))
  })

  it('waits until the key of an error is free, unless the call has used something', async () => {
    for (const status of [400, 503]) {
      const { keyed, log, res } = keyedCall()
      res.statusCode = status
      await (keyed.beforeEnd() ?? assert.fail('it waits for nothing'))
      assert.deepEqual(log, ['release'])
    }
    const used = keyedCall()
    used.call.usage = USAGE
    used.res.statusCode = 500
    assert.equal(used.keyed.beforeEnd(), undefined)
    assert.deepEqual(used.log, [])
  })
})

describe('a call with a key that goes on', () => {
  it('may, as long as its claim is its own', () => {
    const { call, may } = keyedCall()
    call.prove()
    may.send = false
    assert.throws(() => call.prove(), refusal('idempotency_key_in_use'))
  })

  it('is recorded before its last event, where it has produced something', async () => {
    const ending = { outcome: { status: 200, errorCode: null, finish: 'completed' }, unsent: null } as const
    const none = keyedCall()
    await none.call.settle(ending)
    assert.deepEqual(none.log, [])
    const used = keyedCall()
    used.call.usage = USAGE
    await used.call.settle(ending)
    assert.deepEqual(used.log, ['complete'])
  })
})

describe('the end of a call with a key', () => {
  const ended = async (prepare: (made: ReturnType<typeof keyedCall>) => void, whole = false) => {
    const made = keyedCall()
    prepare(made)
    made.close(whole)
    await null
    return made
  }

  it('records what has produced something', async () => {
    const used = await ended(({ call }) => {
      call.usage = USAGE
    })
    assert.deepEqual(used.log, ['complete'])
    const sent = await ended(({ res, body }) => {
      Object.defineProperty(res, 'headersSent', { value: true })
      body.addSent('part')
    })
    assert.deepEqual([sent.log, sent.trace.responseBody], [['complete'], 'part'])
  })

  it('frees the key of what has produced nothing', async () => {
    const routed = await ended(({ call }) => {
      call.routing = { region: 'local', strategy: 'x', eliminated: [], attempts: [] }
    })
    assert.deepEqual([routed.log, routed.trace.responseBody], [['release'], null])
    const whole = await ended(() => {}, true)
    assert.deepEqual(whole.log, ['release'])
    const headOnly = await ended(({ res, call }) => {
      Object.defineProperty(res, 'headersSent', { value: true })
      call.routing = { region: 'local', strategy: 'x', eliminated: [], attempts: [] }
    })
    assert.deepEqual(headOnly.log, ['release'])
    const refused = await ended(({ res, body, call }) => {
      res.statusCode = 500
      Object.defineProperty(res, 'headersSent', { value: true })
      body.addSent('error')
      call.routing = { region: 'local', strategy: 'x', eliminated: [], attempts: [] }
    })
    assert.deepEqual(refused.log, ['release'])
  })

  it('changes nothing where that is settled', async () => {
    for (const state of ['completed', 'lost', 'released', 'settling'] as const) {
      const { log } = await ended(({ held, call }) => {
        held.state = state
        call.usage = USAGE
      })
      assert.deepEqual(log, [], state)
    }
  })

  it('leaves the key to a handler that goes on without its caller, for a while', async (t) => {
    t.mock.timers.enable({ apis: ['setTimeout'] })
    const { log } = await ended(() => {})
    t.mock.timers.tick(HANDLER_MS - 1)
    assert.deepEqual(log, [])
    t.mock.timers.tick(1)
    assert.deepEqual(log, ['release'])
  })

  it('frees it as soon as that handler fails, or where it had failed before', async () => {
    const failing = await ended(() => {})
    assert.deepEqual(failing.log, [])
    failing.call.fail(FAULT)
    assert.deepEqual(failing.log, ['release'])
    const running = keyedCall()
    running.call.fail(FAULT)
    assert.deepEqual(running.log, [], 'while the call runs its end does')
    running.close()
    assert.deepEqual(running.log, ['release'])
  })
})
