import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Dispatcher } from 'undici'
import { MAX_BYTES_AT_ONCE, takeTurn } from '../../lib/core/turns/index.ts'
import { DispatchExchange, type ResponseHandler } from '../../lib/routing/attempt/dispatch-exchange.ts'
import type { ExchangeEnd } from '../../lib/routing/attempt/failure.ts'
import type { ConnectionAware } from '../../lib/routing/lines/upstream-connection.ts'
import { lineOf } from './line-processes.ts'

const HOUR = 3_600_000
const TIMEOUTS = { connectMs: HOUR, firstByteMs: HOUR, idleMs: HOUR, totalMs: HOUR }

/** An exchange whose answer of so many bytes has come, and what was made of it. */
function answered(bytes: number, timeouts = TIMEOUTS) {
  const log: string[] = []
  const said = (what: string) => (): ExchangeEnd => {
    log.push(what)
    return { kind: 'abandoned' }
  }
  const handler: ResponseHandler<ExchangeEnd> = {
    start: () => undefined,
    push: () => false,
    flush: () => undefined,
    finish: said('read'),
    breakOff: said('broken off'),
    abandon: said('abandoned'),
  }
  const controller = { abort() {}, pause() {}, resume() {} } as unknown as Dispatcher.DispatchController
  const dispatch = (_request: Dispatcher.DispatchOptions, exchange: ConnectionAware): void => {
    exchange.onRequestStart?.(controller, undefined)
    exchange.onResponseStart?.(controller, 200, {})
    exchange.onResponseData?.(controller, Buffer.alloc(bytes))
    exchange.onResponseEnd?.(controller, {})
  }
  const exchange = new DispatchExchange<ExchangeEnd>(
    { line: lineOf(), upstreamModel: 'u' },
    { path: '/', method: 'POST' },
    { dispatch, dispatchFresh: dispatch },
    performance.now() + timeouts.totalMs,
    timeouts,
  )
  exchange.account = 'acme'
  const ended = exchange.run(handler)
  return { log, exchange, ended }
}

/** Somebody else works on something large just now. */
const othersWork = (owner: string, ms = 0): void =>
  takeTurn(owner, () => {
    for (const until = performance.now() + ms; performance.now() < until; );
  })

describe('a large answer', () => {
  it('is read in its turn, once; a smaller one at once', async () => {
    othersWork('globex')
    const small = answered(MAX_BYTES_AT_ONCE)
    assert.deepEqual(small.log, ['read'])
    const large = answered(MAX_BYTES_AT_ONCE + 1)
    assert.deepEqual(large.log, [])
    await large.ended
    assert.deepEqual(large.log, ['read'])
  })

  it('that has come whole is read even if its caller has left, and not again in its turn', async () => {
    othersWork('globex')
    const { log, exchange, ended } = answered(MAX_BYTES_AT_ONCE + 1)
    exchange.abandon()
    assert.deepEqual(log, ['read'])
    await ended
    await new Promise<void>((resolve) => takeTurn('globex', resolve))
    assert.deepEqual(log, ['read'])
  })

  it('is not late while it waits for its turn', async () => {
    for (let i = 0; i < 25; i++) othersWork(`account ${i}`, 5)
    const { log, ended } = answered(MAX_BYTES_AT_ONCE + 1, { ...TIMEOUTS, idleMs: 20, totalMs: 60 })
    await sleep(100)
    await ended
    assert.deepEqual(log, ['read'])
  })
})
