import assert from 'node:assert/strict'
import { IncomingMessage, ServerResponse } from 'node:http'
import { Socket } from 'node:net'
import { describe, it, type TestContext } from 'node:test'
import { setImmediate as turn } from 'node:timers/promises'
import { type BillingTrace, type ChargeItem, type HeldPart, openCall } from '../../../lib/core/call/index.ts'
import { FREE } from '../../../lib/core/catalog/index.ts'
import { GatewayError } from '../../../lib/core/errors/index.ts'
import { PaidMinutes } from '../../../lib/middleware/forward/paid-minutes.ts'
import { recordingLogger } from '../../support/app-server.ts'

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

  it('holds nothing where its minutes are free', async (t) => {
    const { log, passTo } = priced(t, { perMinute: 0n })
    await passTo(120)
    assert.deepEqual(log, [])
  })
})
