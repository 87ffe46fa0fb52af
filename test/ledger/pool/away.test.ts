import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { LedgerHealth } from '../../../lib/ledger/pool/ledger-health.ts'
import { recordingLogger } from '../../support/app-server.ts'
import { VirtualClock } from '../support/virtual-clock.ts'

const DOWN = new Error('the ledger is down')

function health(onStoreChange?: (away: boolean) => void) {
  const clock = new VirtualClock()
  const logger = recordingLogger()
  const changes: boolean[] = []
  const told = onStoreChange ?? ((away: boolean) => void changes.push(away))
  return {
    clock,
    logger,
    changes,
    health: new LedgerHealth({ clock, logger, times: { stallMs: 500 }, onStoreChange: told }),
  }
}

describe('a ledger counts as away', () => {
  it('after changes of leases have failed for its time limit, and no sooner', async () => {
    const { clock, changes, health: ledger } = health()
    ledger.failed(DOWN)
    await clock.advance(499)
    ledger.failed(DOWN)
    assert.deepEqual([ledger.away, ledger.silent, changes], [false, false, []])
    await clock.advance(1)
    ledger.failed(DOWN)
    ledger.failed(DOWN)
    assert.deepEqual([ledger.away, ledger.silent, changes, ledger.outages], [true, true, [true], 1])
  })

  it('not because of failures with answers between them', async () => {
    const { clock, changes, health: ledger } = health()
    for (let times = 0; times < 5; times++) {
      ledger.failed(DOWN)
      await clock.advance(300)
      ledger.answered()
    }
    assert.deepEqual([ledger.away, changes], [false, []])
  })

  it('at once if it has not answered for the maximum wait', () => {
    const { changes, health: ledger } = health()
    ledger.late()
    assert.deepEqual([ledger.away, ledger.silent, changes], [true, true, [true]])
  })

  it('from its first silence on; a later failure is not a new beginning', async () => {
    const { clock, health: ledger } = health()
    ledger.late()
    await clock.advance(500)
    ledger.answered()
    ledger.failed(DOWN)
    assert.equal(ledger.away, false)
    ledger.late()
    await clock.advance(200)
    ledger.failed(DOWN)
    assert.equal(ledger.silent, true)
  })

  it('while charges wait too long, even if it answers changes of leases', () => {
    const { changes, health: ledger } = health()
    ledger.stall(true, DOWN)
    ledger.answered()
    assert.deepEqual([ledger.away, ledger.silent, changes], [true, false, [true]])
    ledger.late()
    ledger.stall(false, undefined)
    assert.deepEqual([ledger.away, changes], [true, [true]])
    ledger.answered()
    assert.deepEqual([ledger.away, changes, ledger.outages], [false, [true, false], 1])
  })

  it('with a log line at the beginning, with the failure, and one at the end, with the duration', async () => {
    const { clock, logger, health: ledger } = health()
    ledger.stall(true, DOWN)
    clock.stopFor(1234.6)
    ledger.stall(false, undefined)
    assert.deepEqual(
      logger.lines.map(({ message, fields }) => [message, fields]),
      [
        [
          'store is away',
          {
            err: DOWN,
            store: 'ledger',
            effect: 'calls that cost money are refused with billing_unavailable',
          },
        ],
        ['store is back', { store: 'ledger', forMs: 1235 }],
      ],
    )
    ledger.failed(DOWN)
    clock.stopFor(500)
    ledger.failed(DOWN)
    assert.deepEqual([logger.lines[2]?.message, ledger.outages], ['store is away', 2])
  })

  it('and its listener may fail, which is logged', () => {
    const failure = new Error('metrics')
    const { logger, health: ledger } = health(() => {
      throw failure
    })
    ledger.late()
    assert.equal(ledger.away, true)
    const [, line] = logger.lines
    assert.deepEqual(
      [line?.message, line?.fields],
      ['a listener to outages of the ledger failed', { err: failure }],
    )
  })
})

describe('while the ledger does not answer', () => {
  it('one admission waits for it every half second', async () => {
    const { clock, health: ledger } = health()
    assert.deepEqual([ledger.mayAsk(), ledger.mayAsk()], [true, true])
    ledger.late()
    assert.deepEqual([ledger.mayAsk(), ledger.mayAsk()], [true, false])
    await clock.advance(499)
    assert.equal(ledger.mayAsk(), false)
    await clock.advance(1)
    assert.deepEqual([ledger.mayAsk(), ledger.mayAsk()], [true, false])
    ledger.answered()
    assert.deepEqual([ledger.mayAsk(), ledger.mayAsk()], [true, true])
  })

  it('all admissions wait for it if only charges do', () => {
    const { health: ledger } = health()
    ledger.stall(true, DOWN)
    assert.deepEqual([ledger.mayAsk(), ledger.mayAsk()], [true, true])
  })
})
