import assert from 'node:assert/strict'
import { describe, it, type TestContext } from 'node:test'
import { chatCompletions, messages } from '../../../lib/core/operations/index.ts'
import { CandidateTable } from '../../../lib/routing/candidates/candidate.ts'
import { RetryBudget } from '../../../lib/routing/candidates/retry-budget.ts'
import { LineRegistry } from '../../../lib/routing/lines/line-registry.ts'
import { RecentCounts } from '../../../lib/routing/lines/recent-counts.ts'
import { loadConfig } from '../../support/any-config.ts'

/** Time that passes when a test says so. */
function clock(t: TestContext) {
  const time = { ms: 1_000_000 }
  t.mock.method(performance, 'now', () => time.ms)
  return time
}

/** How many of so many retries the budget has. */
const taken = (budget: RetryBudget, asked: number) =>
  Array.from({ length: asked }, () => budget.takeRetry()).filter(Boolean).length

function called(budget: RetryBudget, times: number): void {
  for (let i = 0; i < times; i++) budget.count(1, 0)
}

describe('the retries of a model', () => {
  it('are shared by its endpoints, also after a change of the catalogue, and by no other model', () => {
    const line = {
      id: 'l',
      provider: 'p',
      protocol: 'openai',
      baseUrl: 'http://localhost',
      models: { m: 'u', n: 'u' },
    }
    const models = Object.keys(line.models).map((id) => ({ id, kind: 'chat' }))
    const load = () => loadConfig({ models, lines: [line] }).catalog
    const [catalog, changed] = [load(), load()]
    const [model, other] = [...catalog.models.values()]
    assert.ok(model && other)
    const table = new CandidateTable(new LineRegistry())
    const { budget } = table.of(catalog, model, chatCompletions)
    assert.equal(table.of(catalog, model, messages).budget, budget)
    assert.equal(table.of(changed, model, chatCompletions).budget, budget)
    assert.notEqual(table.of(catalog, other, chatCompletions).budget, budget)
  })

  it('are ten in a second, at any load', (t) => {
    const time = clock(t)
    const budget = new RetryBudget()
    assert.equal(taken(budget, 30), 10)
    time.ms += 999
    assert.equal(taken(budget, 30), 0)
    time.ms += 1
    assert.equal(taken(budget, 30), 10)
  })

  it('are a fifth of the calls of ten seconds beyond that, exactly', (t) => {
    clock(t)
    const budget = new RetryBudget()
    called(budget, 99)
    assert.equal(taken(budget, 100), 19)
    called(budget, 1)
    assert.equal(taken(budget, 100), 1)
    called(budget, 4)
    assert.equal(taken(budget, 100), 0)
    called(budget, 1)
    assert.equal(taken(budget, 100), 1)
  })

  it('count against that share for ten seconds, as do the calls', (t) => {
    const time = clock(t)
    const budget = new RetryBudget()
    called(budget, 100)
    assert.equal(taken(budget, 100), 20)
    time.ms += 9000
    assert.equal(taken(budget, 100), 10, 'the share is used up, the ten of the second are not')
    called(budget, 100)
    assert.equal(taken(budget, 100), 10)
    time.ms += 1000
    // The first hundred calls and twenty retries have passed, a hundred and twenty are left.
    assert.equal(taken(budget, 100), 10)
    called(budget, 100)
    assert.equal(taken(budget, 100), 10)
  })
})

describe('counts over a rolling window', () => {
  it('contain the events of its spans, including the present one', (t) => {
    const time = clock(t)
    const counts = new RecentCounts(1000, 3)
    assert.deepEqual([counts.totals, counts.markedNow], [{ all: 0, marked: 0 }, 0])
    counts.count(4, 1)
    counts.count(3, 2)
    time.ms += 1000
    counts.count(10, 5)
    assert.deepEqual([counts.totals, counts.markedNow], [{ all: 17, marked: 8 }, 5])
    time.ms += 1999
    assert.deepEqual([counts.totals, counts.markedNow], [{ all: 17, marked: 8 }, 0])
    time.ms += 1
    assert.deepEqual([counts.totals, counts.markedNow], [{ all: 10, marked: 5 }, 0])
    time.ms += 1000
    assert.deepEqual(counts.totals, { all: 0, marked: 0 })
  })

  it('are empty after a pause of any length', (t) => {
    const time = clock(t)
    for (const pause of [3000, 4000, 1_000_000]) {
      const counts = new RecentCounts(1000, 3)
      counts.count(1, 1)
      time.ms += 1000
      counts.count(1, 1)
      time.ms += pause
      assert.deepEqual([counts.totals, counts.markedNow], [{ all: 0, marked: 0 }, 0])
      counts.count(2, 1)
      assert.deepEqual(counts.totals, { all: 2, marked: 1 })
    }
  })
})
