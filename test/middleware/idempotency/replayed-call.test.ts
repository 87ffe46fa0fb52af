import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { GatewayError } from '../../../lib/core/errors/index.ts'
import { HANDLER_MS, replayedCall } from './replayed-calls.ts'

const FAULT = new GatewayError('internal_error')
const ROUTING = { region: 'local', strategy: 'x', eliminated: [], attempts: [] }
const code = (expected: string) => (error: unknown) =>
  error instanceof GatewayError && error.code === expected

describe('the end of an answer that is given again', () => {
  for (const [status, keeps, expected] of [
    [200, true, ['settle', 'complete']],
    [399, true, ['settle', 'complete']],
    [400, true, ['complete']],
    [500, true, ['complete']],
    [200, false, ['release']],
    [500, false, ['release']],
  ] as const)
    it(`waits at ${status} for ${expected.join(' and ')}, where keepWhen says ${keeps}`, async () => {
      const asked: number[] = []
      const { replayed, res, log, held } = replayedCall({
        keepWhen(each) {
          asked.push(each)
          return keeps
        },
      })
      res.statusCode = status
      replayed.onSend('text', 'utf8')
      await (replayed.beforeEnd() ?? assert.fail('it waits for nothing'))
      assert.deepEqual([asked, log], [[status], expected])
      assert.equal(held.answer !== undefined && JSON.parse(held.answer).body === 'text', keeps)
    })

  it('is the refusal of another middleware where its status is that of the answer: the key is free', async () => {
    for (const [status, expected] of [
      [402, ['release']],
      [400, ['complete']],
    ] as const) {
      const { call, replayed, res, log } = replayedCall()
      call.refuse('insufficient_balance')
      res.statusCode = status
      await replayed.beforeEnd()
      assert.deepEqual(log, expected, `${status}`)
    }
  })

  it('is kept where keepWhen throws, and the log says so', async () => {
    const failure = new Error('no tea')
    const { call, replayed, log, logger } = replayedCall({
      keepWhen() {
        throw failure
      },
    })
    await replayed.beforeEnd()
    assert.deepEqual(log, ['settle', 'complete'])
    assert.deepEqual(logger.lines, [
      {
        level: 'error',
        fields: { err: failure, requestId: call.id },
        message: 'idempotency: "keepWhen" has thrown',
      },
    ])
  })

  it('is an error in its place where another call has the key by then', async () => {
    for (const status of [200, 500]) {
      const lost = replayedCall()
      lost.held.state = 'lost'
      lost.res.statusCode = status
      assert.throws(() => lost.replayed.beforeEnd(), code('idempotency_key_in_use'))
      const late = replayedCall()
      late.may.send = false
      late.res.statusCode = status
      await assert.rejects(async () => late.replayed.beforeEnd(), code('idempotency_key_in_use'))
      assert.ok(!late.log.includes('complete'))
      const taken = replayedCall({ kept: false })
      taken.res.statusCode = status
      await assert.rejects(
        async () => taken.replayed.beforeEnd(),
        (error: GatewayError) => {
          assert.equal(error.code, 'idempotency_key_in_use')
          assert.match(
            error.message,
            /^This request was held up for so long that its Idempotency-Key was freed/,
          )
          assert.deepEqual([error.headers['retry-after'], error.status], ['2', 409])
          return true
        },
      )
    }
  })

  it('is an error in its place where the store does not confirm it', async () => {
    const failure = new Error('away')
    const { replayed } = replayedCall({ kept: failure })
    await assert.rejects(
      async () => replayed.beforeEnd(),
      (error: GatewayError) => {
        assert.deepEqual([error.code, error.cause], ['internal_error', failure])
        assert.match(
          error.message,
          /^The request ran, but that could not be recorded under its Idempotency-Key/,
        )
        return true
      },
    )
  })

  for (const state of ['settling', 'completed', 'releasing', 'released'] as const)
    it(`waits for nothing where the claim is ${state}`, () => {
      const { held, replayed, log } = replayedCall()
      held.state = state
      assert.equal(replayed.beforeEnd(), undefined)
      assert.deepEqual(log, [])
    })
})

describe('a call whose answer is given again', () => {
  it('may go on as long as its claim is its own', () => {
    const { call, may } = replayedCall()
    call.prove()
    may.send = false
    assert.throws(() => call.prove(), code('idempotency_key_in_use'))
  })

  /** What a call has come to when it ends without an answer, and what becomes of its key then. */
  const ENDINGS: [string, (made: ReturnType<typeof replayedCall>) => void, string[]][] = [
    [
      'whose handler routed, with nothing sent',
      ({ call }) => {
        call.routing = ROUTING
      },
      ['release'],
    ],
    [
      'whose handler routed, with a part sent',
      ({ call, sendHead }) => {
        sendHead()
        call.routing = ROUTING
      },
      ['complete'],
    ],
    ['whose handler has failed', ({ call }) => call.fail(FAULT), ['complete']],
    [
      'whose handler has failed, and whose key is lost',
      ({ call, held }) => {
        call.fail(FAULT)
        held.state = 'lost'
      },
      [],
    ],
    ['whose handler may still answer', () => {}, []],
  ]
  for (const [name, prepare, expected] of ENDINGS)
    it(`${name} ends with ${expected.join() || 'nothing'}`, async () => {
      const made = replayedCall()
      prepare(made)
      made.close()
      await null
      assert.deepEqual(made.log, expected)
    })

  it('ends with nothing more where it was answered', async () => {
    const { replayed, log, close, call } = replayedCall()
    await replayed.beforeEnd()
    log.length = 0
    call.routing = ROUTING
    close()
    await null
    assert.deepEqual(log, [])
  })
})

describe('a handler that goes on without its caller', () => {
  const left = () => {
    const made = replayedCall()
    made.close()
    return made
  }

  it('has the key for a while, and uses it up if it does not answer by then', (t) => {
    t.mock.timers.enable({ apis: ['setTimeout'] })
    const { log } = left()
    t.mock.timers.tick(HANDLER_MS - 1)
    assert.deepEqual(log, [])
    t.mock.timers.tick(1)
    assert.deepEqual(log, ['complete'])
  })

  it('that answers in time is recorded once', async (t) => {
    t.mock.timers.enable({ apis: ['setTimeout'] })
    const { log, replayed } = left()
    await replayed.beforeEnd()
    t.mock.timers.tick(2 * HANDLER_MS)
    assert.deepEqual(
      log.filter((each) => each !== 'settle'),
      ['complete'],
    )
  })

  it('whose key is lost meanwhile does nothing to it', (t) => {
    t.mock.timers.enable({ apis: ['setTimeout'] })
    const { log, held } = left()
    held.state = 'lost'
    t.mock.timers.tick(HANDLER_MS)
    assert.deepEqual(log, [])
  })

  it('that fails uses the key up where a part of its answer was sent, and else what is answered to that does', () => {
    const sent = left()
    sent.sendHead()
    sent.call.fail(FAULT)
    assert.deepEqual(sent.log, ['complete'])
    const unsent = left()
    unsent.call.fail(FAULT)
    assert.deepEqual(unsent.log, [])
  })

  it('costs nobody anything where its record is not confirmed', async (t) => {
    t.mock.timers.enable({ apis: ['setTimeout'] })
    const made = replayedCall({ kept: new Error('away') })
    made.close()
    t.mock.timers.tick(HANDLER_MS)
    // A rejection that nobody handles would fail this test.
    await new Promise(setImmediate)
    assert.deepEqual(made.log, ['complete'])
  })
})
