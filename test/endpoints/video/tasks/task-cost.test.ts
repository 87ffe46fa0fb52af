import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { costOfTask, mostItCosts } from '../../../../lib/ledger/tasks/task-cost.ts'
import { FACTS, PRICE } from '../../../contracts/task-samples.ts'

const FREE = { ...PRICE, perRequest: 0n, perSecond: 0n }
const UNKNOWN = { seconds: null, tokens: null }

describe('the hold for a video', () => {
  it('is its seconds and its request, at the dearest price of all lines', () => {
    const dear = { ...PRICE, perSecond: 12n }
    assert.equal(mostItCosts(FACTS, [PRICE, dear]), 101n)
    assert.equal(mostItCosts(FACTS, [FREE]), 0n)
    assert.equal(mostItCosts(FACTS, []), 0n)
  })

  it('is as many tokens as all its frames may be, where tokens have a price', () => {
    const price = { ...FREE, outputPerMillion: 1_000_000n }
    // 1280 × 720 pixels, 24 frames in each of 8 seconds, a token for 1024 pixels; and a quarter more.
    assert.equal(mostItCosts(FACTS, [price]), 216_000n)
    const facts = { ...FACTS, size: null }
    assert.equal(mostItCosts({ ...facts, resolution: '720p' }, [price]), 216_000n)
    assert.equal(mostItCosts({ ...facts, resolution: '480p', framesPerSecond: 12 }, [price]), 48_600n)
    assert.equal(mostItCosts(facts, [price]), 486_000n, 'the largest where nobody says')
  })

  it('is that of the largest for an unknown resolution, whatever its name', () => {
    const price = { ...FREE, outputPerMillion: 1_000_000n }
    const names = ['', '8k', '1080P', ...Object.getOwnPropertyNames(Object.prototype)]
    for (const resolution of names)
      assert.equal(mostItCosts({ ...FACTS, size: null, resolution }, [price]), 486_000n, resolution)
  })

  it('is the greater of the two where both have a price', () => {
    const price = { ...PRICE, outputPerMillion: 1_000_000n }
    assert.equal(mostItCosts(FACTS, [price]), 216_005n)
    assert.equal(mostItCosts(FACTS, [{ ...price, perSecond: 1_000_000n }]), 8_000_005n)
  })
})

describe('the cost of a video', () => {
  it('by tokens that were not reported is reckoned, and marked so', () => {
    const price = { ...FREE, outputPerMillion: 1_000_000n }
    const { amount, source } = costOfTask({ facts: FACTS, price, usage: UNKNOWN })
    assert.deepEqual([amount, source], [172_800n, 'estimated'])
  })

  it('is rounded half up once, over all its terms', () => {
    const price = { ...FREE, perRequest: 1n, outputPerMillion: 1n }
    const cost = (tokens: number) => costOfTask({ facts: FACTS, price, usage: { ...UNKNOWN, tokens } }).amount
    assert.deepEqual([cost(499_999), cost(500_000)], [1n, 2n])
  })

  it('by parts of a second is exact', () => {
    const usage = { ...UNKNOWN, seconds: 5.25 }
    assert.equal(costOfTask({ facts: FACTS, price: PRICE, usage }).amount, 58n)
  })
})
