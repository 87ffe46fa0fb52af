import assert from 'node:assert/strict'
import { describe, it, type TestContext } from 'node:test'
import { LineState } from '../../../lib/routing/lines/line-state.ts'
import { exchangeAll, lineOf, processes } from '../support/line-processes.ts'

/** The state of a line, on a clock that a test sets. */
function stateOn(t: TestContext) {
  let now = 1_000_000
  t.mock.method(performance, 'now', () => now)
  const state = new LineState(lineOf({}, { m: 'u', n: 'v', o: 'w' }))
  t.after(() => state.close())
  return {
    state,
    pass(ms: number): void {
      now += ms
    },
  }
}

function assertNear(actual: number | undefined, expected: number): void {
  assert.ok(actual !== undefined && Math.abs(actual - expected) < 1e-6, `${actual} instead of ${expected}`)
}

describe('the state of a line', () => {
  it('has an average time to first byte, which rises at once, falls by the time that has passed, and fades', (t) => {
    const { state, pass } = stateOn(t)
    assert.deepEqual([state.firstByteMs, state.expectedFirstByteMs], [undefined, 0])
    state.observeFirstByte(100)
    state.observeFirstByte(1000)
    assertNear(state.firstByteMs, 1000)
    state.observeFirstByte(20)
    assertNear(state.firstByteMs, 1000)
    pass(10_000)
    assertNear(state.expectedFirstByteMs, 1000 / Math.E)
    assertNear(state.firstByteMs, 1000)
    state.observeFirstByte(20)
    assertNear(state.firstByteMs, 1000 / Math.E + 20 * (1 - 1 / Math.E))
    assertNear(state.expectedFirstByteMs, state.firstByteMs ?? 0)
  })

  it('has an average of tokens per second, of which the last answer contributes a fifth', (t) => {
    const { state } = stateOn(t)
    for (const [tokens, ms] of [
      [0, 100],
      [100, 0],
      [-1, 100],
    ] as const)
      state.observeThroughput(tokens, ms)
    assert.equal(state.tokensPerSecond, undefined)
    state.observeThroughput(50, 500)
    assertNear(state.tokensPerSecond, 100)
    state.observeThroughput(200, 1000)
    assertNear(state.tokensPerSecond, 120)
  })

  it('has a state for each of 1,000 names in use that a pattern matches, and one for all others', (t) => {
    const { state, pass } = stateOn(t)
    const stateOf = (i: number) => state.modelState(`gpt-${i}`, 'gpt-*')
    for (let i = 0; i < 1000; i++) stateOf(i).rest(15_000)
    assert.equal(stateOf(1000), stateOf(1001))
    assert.notEqual(stateOf(998), stateOf(999))
    assert.equal(state.models.size, 1001)
    pass(60_000)
    assert.notEqual(stateOf(1000), stateOf(1001), 'the others are not in use any more')
  })

  it('keeps a model with the same name at the upstream, and starts again with one that has another name or returns', (t) => {
    const { state } = stateOn(t)
    const before = ['m', 'n', 'o'].map((id) => state.modelState(id))
    for (const model of before) model.rest(15_000)
    const changed = lineOf({}, { m: 'u', n: 'other' })
    state.adopt(changed)
    assert.equal(state.line, changed)
    const now = ['m', 'n', 'o'].map((id) => state.modelState(id))
    assert.deepEqual(
      now.map((model, i) => [model === before[i], model.restMs > 0]),
      [
        [true, true],
        [false, false],
        [false, false],
      ],
    )
  })

  it('ends the rests of all its models, and no others', (t) => {
    const { state } = stateOn(t)
    const models = ['m', 'n'].map((id) => state.modelState(id))
    for (const model of models) model.rest(15_000)
    state.liftRests()
    assert.deepEqual(
      models.map(({ restMs, recovering }) => [restMs, recovering]),
      [
        [0, false],
        [0, false],
      ],
    )
  })

  it('of a model that the line no longer serves is not shared with other processes', async (t) => {
    const [one, other] = processes(t, { resetMs: 20_000 })
    await exchangeAll(one, other)
    one.fails('x', 1)
    one.state.adopt(lineOf({}, { n: 'u' }))
    one.model.rest(15_000)
    other.model.rest(30_000)
    one.fails('x', 4)
    assert.equal(one.circuit.state, 'closed')
    await exchangeAll(one, other)
    assert.ok(one.model.restMs <= 15_000)
    assert.equal(other.admits(), 'xy')
    other.fails('x', 4)
    await exchangeAll(one, other)
    assert.deepEqual([one.admits(), other.admits()], ['xy', 'y'])
  })
})
