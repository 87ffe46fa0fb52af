import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { GatewayError } from '../../../lib/core/errors/index.ts'
import { billedCall, COST, ENDING, sent } from './billed-calls.ts'

const UNSENT = Buffer.from('the whole answer')
const WHOLE = { ...ENDING, unsent: UNSENT }

/** A call whose answer is kept apart, and what has been asked of its store. */
function kept(isKept: boolean, options: Parameters<typeof billedCall>[0] = {}) {
  const asked: unknown[] = []
  const made = billedCall({
    claim: {},
    keepApart(unsent) {
      asked.push(unsent)
      made.log.push('keep')
      return Promise.resolve(isKept)
    },
    ...options,
  })
  made.used()
  return { ...made, asked }
}

const codeOf = async (settling: Promise<void> | undefined) =>
  settling?.then(
    () => 'done',
    (error: unknown) => (error instanceof GatewayError ? error.code : String(error)),
  )

describe('the charge of an answer that is kept apart from its entry', () => {
  const rows = [
    [true, 'confirmed', 'done', ['keep', `settle ${COST}`]],
    [true, 'unconfirmed', 'billing_unavailable', ['keep', `settle ${COST}`, 'discard', 'revoke']],
    [true, 'fenced', 'Error: lost', ['keep', `settle ${COST}`]],
    [false, 'confirmed', 'billing_unavailable', ['keep', `settle ${COST}`, 'discard', 'revoke']],
    [false, 'unconfirmed', 'billing_unavailable', ['keep', `settle ${COST}`, 'discard', 'revoke']],
    [false, 'fenced', 'Error: lost', ['keep', `settle ${COST}`]],
  ] as const
  for (const [isKept, outcome, ends, done] of rows)
    it(`is ${outcome}, and the answer ${isKept ? 'was' : 'could not be'} kept: ${ends}`, async () => {
      const { call, billed, log, asked } = kept(isKept, { outcome: Promise.resolve(outcome) })
      call.onAssertOwnsClaim(() => {
        throw new Error('lost')
      })
      const settling = billed.settle(WHOLE)
      assert.deepEqual(log, ['keep'], 'the charge waits for the answer')
      assert.equal(await codeOf(settling), ends)
      assert.deepEqual([log, asked], [done, [UNSENT]])
    })

  it('returns how large the entry becomes, with the answer that it has', () => {
    const bytes = (unsent: Buffer | null, claim: object | null = {}) => {
      const { billed, used, bills } = billedCall({ claim })
      used()
      billed.settle({ ...ENDING, unsent })
      return bills[0]?.bytes ?? 0
    }
    const least = bytes(null)
    assert.ok(least > 0)
    assert.equal(bytes(UNSENT), least + UNSENT.length)
    assert.equal(bytes(UNSENT, null), least, 'nobody keeps it')
  })
})

describe('a call that ends while its charge still waits', () => {
  const settled = () => new Promise((resolve) => setImmediate(resolve))
  const waiting = { outcome: new Promise<never>(() => {}) }

  it('is taken away from it, once its answer is kept', async () => {
    const keeping = Promise.withResolvers<boolean>()
    const { billed, used, close, replaced, bills, call, log } = billedCall(waiting)
    used()
    void billed.settle(ENDING)
    const asked: unknown[] = []
    call.idempotency = {
      keepApart(unsent: unknown) {
        asked.push(unsent)
        return keeping.promise
      },
      discard: () => void log.push('discard'),
    } as unknown as NonNullable<typeof call.idempotency>
    close()
    await settled()
    assert.deepEqual([replaced, asked], [[], [null]])
    keeping.resolve(true)
    await settled()
    const [bill] = replaced
    assert.notEqual(bill, billed)
    assert.deepEqual([bill?.requestId, bill?.amount, bill?.basis()], [call.id, COST, bills[0]?.basis()])
    bill?.onResolved?.('fenced')
    assert.deepEqual(log, [`settle ${COST}`, 'discard'], 'nothing of the answer was sent')
  })

  it('leaves what was sent of its answer as it is', async () => {
    const { billed, used, close, replaced, res, log } = billedCall({ ...waiting, claim: {} })
    used()
    void billed.settle(ENDING)
    sent(res)
    close()
    await settled()
    replaced[0]?.onResolved?.('fenced')
    assert.deepEqual(log, [`settle ${COST}`])
  })

  it('stays with a charge that is done, before the end or while the answer is kept', async () => {
    for (const when of ['before', 'meanwhile'] as const) {
      const { billed, close, replaced, asked } = kept(true, { ...waiting })
      void billed.settle(ENDING)
      if (when === 'before') billed.onResolved('confirmed')
      close()
      if (when === 'meanwhile') billed.onResolved('confirmed')
      await settled()
      assert.deepEqual([replaced, asked.length], [[], when === 'before' ? 1 : 2], when)
    }
  })

  it('is logged where that goes wrong, and fails nothing', async () => {
    const { billed, used, close, replaced, logged, call } = billedCall({
      ...waiting,
      claim: {},
      keepApart: (unsent) => (unsent === null ? Promise.reject(new Error('the disk is full')) : undefined),
    })
    used()
    void billed.settle(WHOLE)
    close()
    await settled()
    assert.deepEqual(replaced, [])
    assert.deepEqual(
      logged.map(({ level, fields }) => [level, fields.requestId, String(fields.err)]),
      [['error', call.id, 'Error: the disk is full']],
    )
  })

  it('is charged and taken away where it ended without having been settled', async () => {
    const { used, close, replaced, log } = billedCall(waiting)
    used()
    close(true)
    await settled()
    assert.deepEqual([log, replaced.length], [[`settle ${COST}`], 1])
  })
})
