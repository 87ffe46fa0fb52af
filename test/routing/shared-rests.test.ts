import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { exchangeAll, processes } from './line-processes.ts'

describe('a rest of several processes', () => {
  it('holds in all, with what is left of it, and goes on from the longest', async (t) => {
    const [one, other] = processes(t)
    one.model.rest(15_000)
    await exchangeAll(one, other)
    assert.ok(other.model.restMs > 14_000 && other.model.restMs <= one.model.restMs + 5)
    other.model.rest(30_000)
    await exchangeAll(one, other)
    assert.ok(one.model.restMs > 29_000)
    one.model.rest(1000)
    await exchangeAll(one, other)
    assert.ok(one.model.restMs > 28_000 && other.model.restMs > 28_000)
  })

  it('of which the upstream said no length grows in all', async (t) => {
    const [one, other] = processes(t)
    one.model.rest(undefined)
    await exchangeAll(one, other)
    assert.deepEqual([one.model.recovering, other.model.recovering], [true, true])
    assert.ok(other.model.restMs > 0)
  })

  it('that is lifted in one process after the other does not come back', async (t) => {
    const all = processes(t)
    const [one, other, third] = all
    const rests = () => all.map(({ model }) => model.restMs > 0)
    one.model.rest(15_000)
    await exchangeAll(...all)
    assert.deepEqual(rests(), [true, true, true])
    other.model.lift()
    await exchangeAll(third, one, other)
    assert.deepEqual(rests(), [true, false, true])
    for (const { model } of [one, third]) model.lift()
    await exchangeAll(...all)
    assert.deepEqual(rests(), [false, false, false])
    third.model.rest(15_000)
    await exchangeAll(...all)
    assert.deepEqual(rests(), [true, true, true], 'but another one is told')
  })
})
