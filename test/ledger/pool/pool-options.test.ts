import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { consoleLogger, quietLogger } from '../../../lib/core/call/index.ts'
import { systemClock } from '../../../lib/ledger/pool/clock.ts'
import { type LeasePoolOptions, withDefaults } from '../../../lib/ledger/pool/lease-pool-options.ts'
import { ledgerOf } from '../support/faulty-ledger.ts'
import { VirtualClock } from '../support/virtual-clock.ts'

const ledger = ledgerOf('1')
const refused = (options: object, message: RegExp) =>
  assert.throws(() => withDefaults({ ledger, ...options } as LeasePoolOptions), {
    name: 'TypeError',
    message,
  })

describe('the options of a pool', () => {
  it('have defaults', () => {
    const { owner, onStoreChange, times: _times, ...others } = withDefaults({ ledger })
    // They grow while this process is delayed, which a clock of its own is not.
    const { admissionMs, stallMs, confirmMs } = withDefaults({ ledger, clock: new VirtualClock() }).times
    assert.deepEqual(
      { admissionMs, stallMs, confirmMs },
      { admissionMs: 1000, stallMs: 500, confirmMs: 1500 },
    )
    assert.deepEqual(others, {
      ledger,
      onStoreError: 'hold',
      maxQueueBytes: 64 * 1024 * 1024,
      logger: consoleLogger,
      clock: systemClock,
    })
    assert.match(owner, /^process-[0-9a-f-]{36}$/)
    assert.notEqual(withDefaults({ ledger }).owner, owner)
    onStoreChange(true)
  })

  it('are used as given', () => {
    const logger = quietLogger({ info: () => {}, warn: () => {}, error: () => {} })
    const clock = new VirtualClock()
    const waits = { admissionMs: 0.5, stallMs: 2, confirmMs: 3 }
    const given = {
      ledger,
      owner: 'p',
      onStoreError: 'deliver',
      maxQueueBytes: 1,
      onStoreChange: () => {},
      logger,
      clock,
    } as const
    const { times, ...taken } = withDefaults({ ...given, ...waits })
    assert.deepEqual(taken, given)
    times.answered(400)
    const { admissionMs, stallMs, confirmMs } = times
    assert.deepEqual({ admissionMs, stallMs, confirmMs }, waits)
  })

  it('increase the waits with the latency of the ledger, up to a limit', () => {
    const clock = new VirtualClock()
    const { times } = withDefaults({ ledger, clock })
    const waits = () => [times.admissionMs, times.stallMs, times.lateMs, times.confirmMs]
    times.answered(60)
    assert.deepEqual(waits(), [1000, 500, 250, 1500])
    times.answered(200)
    assert.deepEqual(waits(), [1000, 500, 250, 1500], 'it may still be as near as a moment ago')
    for (const _ of [1, 2]) {
      clock.stopFor(16_000)
      times.answered(200)
    }
    assert.deepEqual(waits(), [2000, 1600, 800, 3000])
    times.answered(60)
    assert.deepEqual(waits(), [1000, 500, 250, 1500])
    times.answered(300)
    assert.deepEqual(waits(), [3000, 2400, 1200, 4500], 'what comes late tells that it has become slow')
    times.answered(200)
    assert.deepEqual(waits(), [2000, 1600, 800, 3000])
    for (const _ of [1, 2]) {
      clock.stopFor(16_000)
      times.answered(9000)
    }
    assert.deepEqual(waits(), [5000, 4000, 2000, 7500])
    times.answered(1)
    assert.deepEqual(waits(), [1000, 500, 250, 1500])
  })

  it('are rejected if they are invalid, with a description of the valid values', () => {
    const operations = Object.fromEntries(
      ['change', 'renew', 'settle', 'leases', 'sweep'].map((name) => [name, () => {}]),
    )
    withDefaults({ ledger: operations } as unknown as LeasePoolOptions)
    const lacking = Object.keys(operations).map((name) => ({ ...operations, [name]: undefined }))
    for (const wrong of [undefined, null, {}, ...lacking])
      refused({ ledger: wrong }, /"ledger" must be a ledger/)
    refused({ onStoreError: 'drop' }, /"onStoreError" must be "hold" or "deliver"/)
    for (const maxQueueBytes of [0, Number.NaN])
      refused({ maxQueueBytes }, /"maxQueueBytes" must be at least 1/)
    for (const missing of ['now', 'wall', 'after', 'limit'])
      refused({ clock: { ...systemClock, [missing]: undefined } }, /"clock" must be a clock/)
    for (const name of ['admissionMs', 'stallMs', 'confirmMs']) {
      for (const ms of [0, -1, Number.NaN, Number.POSITIVE_INFINITY])
        refused({ [name]: ms }, new RegExp(`"${name}" must be milliseconds above 0`))
    }
  })
})
