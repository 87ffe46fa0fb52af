import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import type { RunningClaim } from '../../../lib/core/call/index.ts'
import { GatewayError } from '../../../lib/core/errors/index.ts'
import { HANDLER_MS, keyedCall, USAGE } from './keyed-calls.ts'

const FAULT = new GatewayError('internal_error')
const ROUTING = { region: 'local', strategy: 'x', eliminated: [], attempts: [] }

type Made = ReturnType<typeof keyedCall>

/** What the end of an answer comes to: an error in its place, or what was done before. */
async function endOf(made: Made): Promise<string> {
  try {
    await made.keyed.beforeEnd()
    return made.log.join() || 'nothing'
  } catch (error) {
    return (error as GatewayError).code
  }
}

describe('the end of an answer to a call with a key', () => {
  const LOST = 'idempotency_key_in_use'
  /** By the state of the claim: at these statuses, without usage and with it. */
  const OUTCOMES: [RunningClaim['state'], readonly [status: number, without: string, withUsage: string][]][] =
    [
      [
        'running',
        [
          [200, 'complete', 'complete'],
          [399, 'complete', 'complete'],
          [400, 'release', 'nothing'],
          [401, 'release', 'nothing'],
          [500, 'release', 'nothing'],
        ],
      ],
      [
        'lost',
        [
          [200, LOST, LOST],
          [399, LOST, LOST],
          [400, 'nothing', 'nothing'],
          [500, 'nothing', 'nothing'],
        ],
      ],
      ...(['settling', 'completed', 'releasing', 'released'] as const).map(
        (state): (typeof OUTCOMES)[number] => [
          state,
          [
            [200, 'nothing', 'nothing'],
            [500, 'nothing', 'nothing'],
          ],
        ],
      ),
    ]
  for (const [state, rows] of OUTCOMES)
    for (const [status, without, withUsage] of rows)
      it(`${state}, ${status}: ${without}, and with usage ${withUsage}`, async () => {
        for (const [usage, expected] of [
          [null, without],
          [USAGE, withUsage],
        ] as const) {
          const made = keyedCall()
          made.held.state = state
          made.res.statusCode = status
          made.call.usage = usage
          assert.equal(await endOf(made), expected)
        }
      })

  it('is told to who settles the call, as completed with its status and nothing unsent', async () => {
    const { call, keyed, res } = keyedCall()
    const told: unknown[] = []
    call.onSettle(async (ending) => void told.push(ending))
    res.statusCode = 206
    await keyed.beforeEnd()
    assert.deepEqual(told, [{ outcome: { status: 206, errorCode: null, finish: 'completed' }, unsent: null }])
  })

  it('is an error that says what to do, where nobody confirms the record', async () => {
    const failure = new Error('away')
    const { keyed } = keyedCall({ kept: failure })
    await assert.rejects(
      async () => keyed.beforeEnd(),
      ({ code, cause, foreseen, message }: GatewayError & { foreseen?: boolean }) => {
        assert.deepEqual([code, cause, foreseen], ['internal_error', failure, true])
        assert.match(message, /^The request ran, but that could not be recorded/)
        return true
      },
    )
  })
})

describe('the record of a call with a key', () => {
  it('waits until a large answer is kept apart, with what is unsent', async () => {
    const made = keyedCall()
    const kept = Promise.withResolvers<boolean>()
    const asked: unknown[] = []
    made.trace.keepApart = (unsent) => {
      asked.push(unsent)
      return kept.promise
    }
    made.call.usage = USAGE
    const settled = made.call.settle({
      outcome: { status: 200, errorCode: null, finish: 'completed' },
      unsent: 'rest',
    })
    await new Promise(setImmediate)
    assert.deepEqual([asked, made.log], [['rest'], []])
    kept.resolve(true)
    await settled
    assert.deepEqual(made.log, ['complete'])
  })

  for (const state of ['lost', 'completed', 'releasing', 'released', 'settling'] as const)
    it(`is not written where the claim is ${state}`, async () => {
      const made = keyedCall()
      made.call.usage = USAGE
      made.held.state = state
      await made.call.settle({
        outcome: { status: 200, errorCode: null, finish: 'completed' },
        unsent: null,
      })
      assert.deepEqual(made.log, [])
    })
})

describe('the end of a call with a key, whose caller has left', () => {
  const sent = ({ res, body }: Made, text: string) => {
    Object.defineProperty(res, 'headersSent', { value: true })
    body.addSent(text)
  }
  const route = ({ call }: Made) => {
    call.routing = ROUTING
  }
  /** What there was before its end, and what becomes of its key at once, and when its handler has had its time. */
  const ENDS: [name: string, prepare: (made: Made) => void, atOnce: string[], late: string[]][] = [
    ['nothing', () => {}, [], ['release']],
    ['usage', ({ call }) => void Object.assign(call, { usage: USAGE }), ['complete'], []],
    ['a part of an answer', (made) => sent(made, 'part'), ['complete'], []],
    ['a head without a body', (made) => sent(made, ''), [], ['release']],
    ['a body whose head is not sent', ({ body }) => body.addSent('part'), [], ['release']],
    [
      'a part of an error',
      (made) => {
        sent(made, 'part')
        made.res.statusCode = 400
      },
      [],
      ['release'],
    ],
    ['a failure of its handler', ({ call }) => call.fail(FAULT), ['release'], []],
    ['a route', route, ['release'], []],
    [
      'a route and a part of an answer',
      (made) => {
        route(made)
        sent(made, 'part')
      },
      ['complete'],
      [],
    ],
  ]
  for (const [name, prepare, atOnce, late] of ENDS)
    it(`after ${name}: ${atOnce.join() || 'nothing'} at once, ${late.join() || 'nothing'} later`, async (t) => {
      t.mock.timers.enable({ apis: ['setTimeout'] })
      const made = keyedCall()
      prepare(made)
      made.close()
      await null
      assert.deepEqual(made.log, atOnce)
      t.mock.timers.tick(HANDLER_MS)
      assert.deepEqual(made.log, [...atOnce, ...late])
    })

  it('is left to a handler that produces something in its time, which is recorded then', async (t) => {
    t.mock.timers.enable({ apis: ['setTimeout'] })
    const made = keyedCall()
    made.close()
    await null
    made.call.usage = USAGE
    t.mock.timers.tick(HANDLER_MS)
    assert.deepEqual(made.log, ['complete'])
  })

  it('changes nothing more where its handler has answered in time', async (t) => {
    t.mock.timers.enable({ apis: ['setTimeout'] })
    for (const status of [200, 500]) {
      const made = keyedCall()
      made.close()
      await null
      made.res.statusCode = status
      await made.keyed.beforeEnd()
      const { length } = made.log
      assert.equal(length, 1)
      t.mock.timers.tick(2 * HANDLER_MS)
      made.call.fail(FAULT)
      assert.equal(made.log.length, length, `${status}`)
    }
  })

  it('keeps a large answer apart, and then has none in its entry', () => {
    for (const [parts, body] of [
      [0, 'part'],
      [1, null],
      [2, null],
    ] as const) {
      const made = keyedCall()
      const asked: unknown[] = []
      made.trace.keepApart = (unsent) => {
        asked.push(unsent)
        Object.assign(made.trace, { partsApart: parts })
        return undefined
      }
      made.body.addSent('part')
      made.close(true)
      assert.deepEqual([asked, made.trace.responseBody], [[null], body], `${parts}`)
    }
  })
})
