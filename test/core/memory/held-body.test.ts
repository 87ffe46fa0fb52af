import assert from 'node:assert/strict'
import { Buffer } from 'node:buffer'
import { afterEach, describe, it } from 'node:test'
import type { OpenCall } from '../../../lib/core/call/index.ts'
import type { GatewayError } from '../../../lib/core/errors/index.ts'
import { budgetOf, HeldBody, heldBodyBytes, PieceCount } from '../../../lib/core/memory/index.ts'

const BOUNDS = { perKey: 20_000, perProcess: 50_000 }

let open: HeldBody[] = []
afterEach(() => {
  for (const body of open) body.release()
  open = []
  assert.equal(heldBodyBytes(), 0)
})

/** A body of a key, and what became of it. The account is the letter that the key begins with. */
function bodyOf(
  key: string | undefined,
  {
    end,
    bounds = BOUNDS,
  }: { end?: (run: (error: GatewayError) => void) => void; bounds?: typeof BOUNDS } = {},
) {
  const refused: string[] = []
  const principal = key === undefined ? null : { keyId: key, accountId: key[0] }
  const keyWatch = end ? { follow: (_call: OpenCall, run: (error: GatewayError) => void) => end(run) } : null
  const body = new HeldBody({ principal, keyWatch } as unknown as OpenCall, bounds, (error) => {
    refused.push(error.code)
  })
  open.push(body)
  return { body, refused, add: (bytes: number) => body.add(Buffer.alloc(bytes)) }
}

describe('an incomplete body', () => {
  it('has all received bytes in order, in any pieces', () => {
    const { body } = bodyOf('a1')
    const pieces = [1, 700, 3, 900, 5000, 1].map((length, i) => Buffer.alloc(length, `${i}`))
    for (const piece of pieces) body.add(piece)
    assert.deepEqual(body.take(), Buffer.concat(pieces))
    assert.equal(body.take().length, 0)
  })

  it('counts the memory that it takes, until it is released', () => {
    const { body } = bodyOf('a1')
    body.add(Buffer.alloc(10))
    assert.equal(heldBodyBytes(), 10)
    body.add(Buffer.alloc(1014))
    assert.equal(heldBodyBytes(), 1024)
    body.add(Buffer.alloc(1))
    assert.equal(heldBodyBytes(), 1025)
    body.add(Buffer.alloc(3000))
    assert.equal(heldBodyBytes(), 4025)
    body.count(100)
    body.count(-50)
    assert.equal(heldBodyBytes(), 4125)
    body.release()
    body.release()
    body.count(100)
    assert.equal(heldBodyBytes(), 0)
  })

  it('is refused if the bodies of its key exceed their limit, and the others continue', () => {
    const [first, second, third] = [bodyOf('a1'), bodyOf('a1'), bodyOf('a2')]
    first.add(10_000)
    second.add(10_000)
    third.add(10_000)
    assert.deepEqual([first.refused, second.refused], [[], []])
    second.body.count(1)
    assert.deepEqual([first.refused, second.refused, third.refused], [[], ['concurrency_limited'], []])
    assert.equal(second.body.take().length, 0)
    assert.equal(heldBodyBytes(), 20_000)
  })

  it('counts with the other bodies of its key after one of them has ended', () => {
    const [first, second] = [bodyOf('a1'), bodyOf('a1')]
    first.add(15_000)
    second.body.release()
    const third = bodyOf('a1')
    third.add(5001)
    assert.deepEqual([first.refused, third.refused], [[], ['concurrency_limited']])
  })

  it('can use the memory of ended bodies of its key', () => {
    const [first, second, third] = [bodyOf('a1'), bodyOf('a1'), bodyOf('a1')]
    first.add(10_000)
    second.add(10_000)
    second.body.release()
    third.add(10_000)
    assert.deepEqual([first.refused, third.refused], [[], []])
  })

  it('without a key counts only for the process', () => {
    const first = bodyOf(undefined)
    first.add(50_000)
    assert.deepEqual(first.refused, [])
    first.body.count(1)
    assert.deepEqual(first.refused, ['upstream_overloaded'])
  })

  it('is refused in favour of others if its account holds most, and it is the largest of that account', () => {
    const [small, large, other] = [bodyOf('a1'), bodyOf('a2'), bodyOf('b1')]
    small.add(10_000)
    large.add(20_000)
    other.add(19_000)
    const late = bodyOf('c1')
    late.add(1001)
    const refused = [small, large, other, late].map((each) => each.refused)
    assert.deepEqual(refused, [[], ['upstream_overloaded'], [], []])
    assert.equal(heldBodyBytes(), 30_001)
  })

  it('is refused itself if its account holds most, even if another account has a larger body', () => {
    const [large, other] = [bodyOf('a1'), bodyOf('b1')]
    large.add(20_000)
    other.add(20_000)
    const late = bodyOf('a2')
    late.add(10_001)
    assert.deepEqual([large.refused, other.refused, late.refused], [[], [], ['upstream_overloaded']])
  })

  it('is refused first, and then the others of its account, if those exceed the smaller limit of another body', () => {
    const [large, small, other] = [
      bodyOf('a1'),
      bodyOf('a2', { bounds: { perKey: 5000, perProcess: 12_000 } }),
      bodyOf('b1'),
    ]
    large.add(15_000)
    other.add(3000)
    small.add(2000)
    assert.deepEqual(
      [large.refused, small.refused, other.refused],
      [['upstream_overloaded'], ['upstream_overloaded'], []],
    )
    assert.equal(heldBodyBytes(), 3000)
  })

  it('is refused when its key ends, unless it is complete', () => {
    for (const isWhole of [false, true]) {
      let endKey = (_error: GatewayError): void => {}
      const held = bodyOf('a1', {
        end: (run) => {
          endKey = run
        },
      })
      held.add(10)
      if (isWhole) held.body.release()
      endKey({ code: 'key_disabled' } as GatewayError)
      assert.deepEqual(held.refused, isWhole ? [] : ['key_disabled'])
      assert.equal(heldBodyBytes(), 0)
    }
  })

  it('reports the refusal to its present owner', () => {
    const { body, refused } = bodyOf(undefined)
    const told: string[] = []
    body.whenRefused(({ code }) => told.push(code))
    body.count(50_001)
    assert.deepEqual([refused, told], [[], ['upstream_overloaded']])
  })
})

describe('the limits of such bodies', () => {
  it('are two bodies for a key, and 256 MiB or one body for the process', () => {
    const MIB = 1024 * 1024
    assert.deepEqual(budgetOf('x', 5), { perKey: 10, perProcess: 256 * MIB })
    assert.deepEqual(budgetOf('x', 300 * MIB), { perKey: 600 * MIB, perProcess: 300 * MIB })
    assert.deepEqual(budgetOf('x', 5, 5), { perKey: 10, perProcess: 5 })
    assert.deepEqual(budgetOf('x', 1, 1), { perKey: 2, perProcess: 1 })
  })

  it('are rejected if they are invalid', () => {
    for (const limit of [0, -1, Number.NaN])
      assert.throws(() => budgetOf('x', limit), /^TypeError: x: "bodyLimitBytes" must be a positive/)
    for (const budget of [4, Number.NaN])
      assert.throws(() => budgetOf('x', 5, budget), /^TypeError: x: "bodyBudgetBytes" must be at least/)
  })
})

describe('a body that was refused', () => {
  it('frees the memory of its key, and its bytes', () => {
    const [first, second] = [bodyOf('a1'), bodyOf('a1')]
    first.add(15_000)
    second.add(10_000)
    assert.deepEqual([first.refused, second.refused], [[], ['concurrency_limited']])
    assert.deepEqual([second.body.take().length, bodyOf('a3').body.take().length], [0, 0])
    second.body.add(Buffer.from('late'))
    assert.equal(String(second.body.take()), 'late')
    first.body.release()
    const third = bodyOf('a1')
    third.add(20_000)
    assert.deepEqual(third.refused, [])
  })

  it('is the first of several equally large ones', () => {
    const [first, second] = [bodyOf('a1'), bodyOf('a2')]
    first.add(15_000)
    second.add(15_000)
    const other = bodyOf('b1')
    other.add(20_000)
    const late = bodyOf('c1')
    late.add(1)
    assert.deepEqual([first.refused, second.refused, other.refused], [['upstream_overloaded'], [], []])
  })

  it('is a body in too many pieces', () => {
    const { body, refused } = bodyOf('a1')
    for (let i = 0; i < 4096; i++) body.add(Buffer.from('x'))
    assert.deepEqual(refused, [])
    body.add(Buffer.from('x'))
    assert.deepEqual(refused, ['invalid_request'])
  })
})

describe('the pieces of a body', () => {
  const added = (pieces: number, bytes: number) => {
    const count = new PieceCount()
    let refusal: ReturnType<PieceCount['add']>
    for (let i = 0; i < pieces; i++) refusal = count.add(bytes)
    return refusal
  }

  it('are limited to 4096 of any size, and beyond that to 32 bytes on average', () => {
    assert.deepEqual([added(4096, 0), added(4097, 32), added(10_000, 33)], [undefined, undefined, undefined])
    const refusal = added(4097, 31)
    assert.equal(refusal?.code, 'invalid_request')
    assert.match(String(refusal?.message), /at least 32 bytes in each chunk/)
    const large = new PieceCount()
    large.add(32 * 4097)
    for (let i = 1; i < 4097; i++) assert.equal(large.add(0), undefined)
    assert.equal(large.add(0)?.code, 'invalid_request')
  })
})
