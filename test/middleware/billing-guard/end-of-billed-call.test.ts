import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { FREE } from '../../../lib/core/catalog/index.ts'
import { GatewayError } from '../../../lib/core/errors/index.ts'
import { billingGuard } from '../../../lib/middleware/billing-guard/index.ts'
import { billedCall, COST, ENDING, HANDLER_MS, sent, USAGE } from './billed-calls.ts'

const FAULT = new GatewayError('internal_error')

describe('the end of a call whose money is held', () => {
  it('gives it back where nothing was used', () => {
    const { log, close } = billedCall()
    close(true)
    assert.deepEqual(log, ['release'])
  })

  it('charges what was used, although the handler has not settled it', () => {
    const { log, close, used, call } = billedCall()
    used()
    close(true)
    assert.deepEqual([log, call.billing?.charged], [[`settle ${COST}`], COST])
  })

  it('does nothing more where it is settled', () => {
    const { log, close, used, billed } = billedCall()
    used()
    billed.settle(ENDING)
    close(true)
    assert.deepEqual(log, [`settle ${COST}`])
    billed.beforeEnd()
    assert.deepEqual(
      log.filter((done) => done.startsWith('settle')),
      [`settle ${COST}`],
      'an end that comes later charges nothing',
    )
  })

  it('needs no ledger where the call was free, nothing is held, and it hangs on no key', () => {
    const end = (options: Parameters<typeof billedCall>[0], price = FREE) => {
      const { call, close, log } = billedCall(options)
      call.usage = USAGE
      call.servedBy = { line: 'line-0', price }
      close(true)
      return [log, call.billing?.charged]
    }
    assert.deepEqual(end({ amount: 0n }), [['release'], 0n])
    assert.deepEqual(end({ amount: 0n, claim: {} }), [['settle 0'], 0n])
    assert.deepEqual(end({ amount: 1n }), [['settle 0'], 0n])
    assert.deepEqual(end({ amount: 0n }, { ...FREE, perRequest: 1n }), [['settle 1'], 1n])
  })

  it('gives back at once where a handler has answered, or a line was asked', () => {
    const answered = billedCall()
    answered.billed.beforeEnd()
    answered.close()
    assert.deepEqual(answered.log, ['release'])
    const routed = billedCall()
    routed.call.routing = { region: 'local', strategy: 'x', eliminated: [], attempts: [] }
    routed.close()
    assert.deepEqual(routed.log, ['release'])
  })
})

describe('a handler that goes on when its caller has left', () => {
  it('has its money for as long as it may go on, and may charge by then', (t) => {
    t.mock.timers.enable({ apis: ['setTimeout'] })
    for (const own of [null, 3n]) {
      const { call, log, close, res } = billedCall()
      close()
      t.mock.timers.tick(HANDLER_MS - 1)
      assert.deepEqual(log, [])
      if (own) {
        call.charge(own)
        sent(res)
      }
      t.mock.timers.tick(1)
      assert.deepEqual(log, own ? ['settle 3'] : ['release'])
    }
  })

  it('gives it back as soon as it fails, and not before its call has ended', (t) => {
    t.mock.timers.enable({ apis: ['setTimeout'] })
    const { call, log, close } = billedCall()
    close()
    assert.deepEqual(log, [])
    call.fail(FAULT)
    assert.deepEqual(log, ['release'])
    t.mock.timers.tick(HANDLER_MS)
    assert.deepEqual(log, ['release'])

    const running = billedCall()
    running.call.fail(FAULT)
    assert.deepEqual(running.log, [])
    running.close()
    assert.deepEqual(running.log, ['release'])
  })

  it('gives it back as soon as it ends its answer', async (t) => {
    t.mock.timers.enable({ apis: ['setTimeout'] })
    for (const status of [200, 500]) {
      const { log, close, billed, res } = billedCall()
      close()
      res.statusCode = status
      await billed.beforeEnd()
      assert.deepEqual(log, ['release'])
      t.mock.timers.tick(HANDLER_MS)
      assert.deepEqual(log, ['release'])
    }
  })

  it('may go on until it has both charged and sent some of its answer', (t) => {
    t.mock.timers.enable({ apis: ['setTimeout'] })
    for (const own of [false, true])
      for (const some of [false, true]) {
        const { call, log, close, res } = billedCall()
        if (own) call.charge(3n)
        if (some) sent(res)
        close()
        assert.deepEqual(log, own && some ? ['settle 3'] : [], `${own} ${some}`)
      }
  })

  it('has charged for all that its caller gets, with some of the answer sent', () => {
    const { call, log, close, res } = billedCall()
    call.charge(3n)
    sent(res)
    close()
    assert.deepEqual(log, ['settle 3'])
  })
})

describe('an answer to a call whose money is held', () => {
  it('is charged before its end, and an error is not', async () => {
    const { call, log, billed } = billedCall()
    call.charge(3n)
    await billed.beforeEnd()
    assert.deepEqual(log, ['settle 3'])
    const failed = billedCall()
    failed.call.charge(3n)
    failed.res.statusCode = 400
    await failed.billed.beforeEnd()
    assert.deepEqual(failed.log, [])
  })

  it('waits for the charge where that takes time', async () => {
    const { call, log, billed } = billedCall({ outcome: Promise.resolve('confirmed') })
    call.charge(3n)
    await (billed.beforeEnd() ?? assert.fail('it waits for nothing'))
    assert.deepEqual(log, ['settle 3'])
  })
})

describe('billingGuard, put together wrongly', () => {
  const reserve = () => '1'
  for (const [options, told] of [
    [{}, /give "catalog", or "reserve"/],
    [{ reserve, pool: {} }, /"pool" must be a LeasePool/],
    [{ reserve: '1' }, /"reserve" must be a function/],
    [{ reserve, account: 'acme' }, /"account" must be a function/],
    [{ reserve, key: 'k' }, /"key" must be a function/],
    [{ reserve, budgets: { count: 1, matching: () => [] } }, /"budgets" must be budgets/],
    [{ reserve, budgets: { count: 1, refusal: () => ({}) } }, /"budgets" must be budgets/],
    [{ reserve, handlerMs: 0 }, /"handlerMs" must be a positive whole number/],
    [{ reserve, handlerMs: 1.5 }, /"handlerMs" must be a positive whole number/],
  ] as const)
    it(`says so at once: ${Object.keys(options)}`, () =>
      assert.throws(
        () => billingGuard(options as never),
        (error: Error) =>
          error.name === 'TypeError' &&
          error.message.startsWith('billingGuard: ') &&
          told.test(error.message),
      ))
})
