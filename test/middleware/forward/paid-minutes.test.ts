import assert from 'node:assert/strict'
import { IncomingMessage, ServerResponse } from 'node:http'
import { Socket } from 'node:net'
import { describe, it, type TestContext } from 'node:test'
import { setImmediate as turn } from 'node:timers/promises'
import { type BillingTrace, type ChargeItem, type HeldPart, openCall } from '../../../lib/core/call/index.ts'
import { FREE } from '../../../lib/core/catalog/index.ts'
import { GatewayError } from '../../../lib/core/errors/index.ts'
import { PaidMinutes } from '../../../lib/middleware/forward/charges.ts'
import { type RecordingLogger, recordingLogger } from '../../support/app-server.ts'

const USAGE = {
  inputTokens: 0,
  cachedInputTokens: 0,
  cacheWriteTokens: 0,
  outputTokens: 0,
  source: 'measured',
} as const
const STEP_MS = 10
const POOR = new GatewayError('insufficient_balance')

interface Funds {
  perMinute?: bigint
  /** Whether there is money at a time, in seconds of the call. */
  lastsUntil?: number
  cameBackAt?: number
}

/** A call on a clock that the test sets, and what happens to its money at which second. */
function priced(t: TestContext, { perMinute = 20n, lastsUntil = 1e9, cameBackAt = 1e9 }: Funds = {}) {
  let now = 0
  t.mock.method(performance, 'now', () => now)
  t.mock.timers.enable({ apis: ['setTimeout'] })
  const req = new IncomingMessage(new Socket())
  const call = openCall(req, new ServerResponse(req), { logger: recordingLogger() })
  const log: string[] = []
  const items: ChargeItem[] = []
  const note = (what: string) => void log.push(`${Math.floor(now / 1000)} ${what}`)
  call.billing = {
    async holdPart(item): Promise<HeldPart | GatewayError> {
      items.push(item)
      const hasMoney = now < lastsUntil * 1000 || now >= cameBackAt * 1000
      note(hasMoney ? 'held' : 'refused')
      if (!hasMoney) return POOR
      return { charge: async () => note('charged'), release: () => note('released') }
    },
  } as BillingTrace
  const minutes = new PaidMinutes(call, { ...FREE, perMinute }, ({ code }) => note(`ended: ${code}`))
  t.after(() => minutes.close())
  return {
    ...{ call, log, items, minutes },
    async passTo(second: number): Promise<void> {
      while (now < second * 1000) {
        now += STEP_MS
        t.mock.timers.tick(STEP_MS)
        await turn()
      }
    },
  }
}

describe('an answer that is priced by the minute', () => {
  it('has the money of each minute held five seconds before, and charged when it begins', async (t) => {
    const { call, log, items, passTo } = priced(t)
    call.usage = USAGE
    await passTo(54.5)
    assert.deepEqual(log, [])
    await passTo(179)
    assert.deepEqual(log, ['55 held', '60 charged', '115 held', '120 charged', '175 held'])
    assert.deepEqual(items[0], { unit: 'minute', quantity: 1, price: 20n })
    assert.equal(call.usage?.minutes, 2)
  })

  it('is tried for money every second until the minute begins, and ends then without it', async (t) => {
    const { log, passTo } = priced(t, { lastsUntil: 60 })
    await passTo(125)
    const tries = [115, 116, 117, 118, 119, 120].map((second) => `${second} refused`)
    assert.deepEqual(log, ['55 held', '60 charged', ...tries, '120 ended: insufficient_balance'])
  })

  it('goes on where the money comes in time', async (t) => {
    const { log, passTo } = priced(t, { lastsUntil: 0, cameBackAt: 57 })
    await passTo(61)
    assert.deepEqual(log, ['55 refused', '56 refused', '57 held', '60 charged'])
  })

  it('gives back what is held for a minute that does not begin', async (t) => {
    const { log, minutes, passTo } = priced(t)
    await passTo(57)
    minutes.close()
    await passTo(120)
    assert.deepEqual(log, ['55 held', '57 released'])
  })

  it('is charged from the least amount on', async (t) => {
    const { log, items, passTo } = priced(t, { perMinute: 1n })
    await passTo(61)
    assert.deepEqual(log, ['55 held', '60 charged'])
    assert.equal(items[0]?.price, 1n)
  })

  it('holds nothing where its minutes are free', async (t) => {
    const { log, passTo } = priced(t, { perMinute: 0n })
    await passTo(120)
    assert.deepEqual(log, [])
  })

  it('ends where a minute cannot be charged, and where holding its money fails, which is logged', async (t) => {
    const { log, call, items, passTo } = priced(t)
    const { billing } = call
    assert.ok(billing)
    billing.holdPart = async () => ({ charge: async () => POOR, release: () => void log.push('released') })
    await passTo(130)
    assert.deepEqual(log, ['60 ended: insufficient_balance'])
    assert.deepEqual(items, [])
    t.mock.timers.reset()
    t.mock.restoreAll()

    const broken = priced(t)
    const cause = new Error('no ledger')
    Object.assign(broken.call.billing ?? {}, { holdPart: () => Promise.reject(cause) })
    await broken.passTo(70)
    assert.deepEqual(broken.log, ['55 ended: internal_error'])
    const [line] = (broken.call.logger as RecordingLogger).lines
    assert.deepEqual([line?.level, line?.fields], ['error', { err: cause, requestId: broken.call.id }])
  })

  it('gives back what comes to be held once it is over', async (t) => {
    const { log, call, minutes, passTo } = priced(t)
    const held = Promise.withResolvers<HeldPart>()
    Object.assign(call.billing ?? {}, { holdPart: () => held.promise })
    await passTo(56)
    minutes.close()
    held.resolve({ charge: async () => void log.push('charged'), release: () => void log.push('released') })
    await passTo(61)
    assert.deepEqual(log, ['released'])
  })

  it('costs nothing where no guard holds money, and counts no minutes without a usage', async (t) => {
    const { log, call, passTo } = priced(t)
    Object.assign(call.billing ?? {}, { holdPart: async () => undefined })
    await passTo(61)
    assert.deepEqual(log, [])
    t.mock.timers.reset()
    t.mock.restoreAll()
    const unused = priced(t)
    await unused.passTo(61)
    assert.deepEqual(unused.log, ['55 held', '60 charged'])
    assert.equal(unused.call.usage, null)
  })
})
