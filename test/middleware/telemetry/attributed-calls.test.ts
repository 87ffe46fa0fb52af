import assert from 'node:assert/strict'
import { describe, it, type TestContext } from 'node:test'
import { attributedCallsOn } from '../../../lib/middleware/telemetry/attributed-calls.ts'
import { collectingMeter } from './collected.ts'
import { endedCall } from './ended-calls.ts'

const USD = 1_000_000_000n

/** A call that was for somebody. */
const callOf = (accountId: string, members: object = {}) =>
  endedCall({ principal: { accountId, keyId: null }, user: null, tags: null, ...members })

/** The charge of a video that was for somebody. */
const taskOf = (members: object = {}) => ({ model: 'film', upstreamId: 'up', charge: null, ...members })

function attributing(t: TestContext, labels: readonly string[], maxValues = 100) {
  const { meter, collect } = collectingMeter(t)
  const calls = attributedCallsOn(meter, { labels, maxValues })
  const points = async (name: string) =>
    (await collect())
      .get(`model_gateway.attributed.${name}`)
      ?.points.map(([attributes, value]) => [{ ...attributes }, value]) ?? []
  return { meter, collect, calls, points }
}

describe('the use that is counted by account, user and tag', () => {
  it('are calls, tokens by kind, and charges, each in its unit', async (t) => {
    const { calls, collect, points } = attributing(t, ['account'])
    const usage = { inputTokens: 50, outputTokens: 7 }
    calls.note(callOf('acme', { usage, billing: { charged: USD / 4n } }))
    calls.note(callOf('acme', { billing: { charged: 0n } }))
    calls.note(callOf('globex', { billing: { charged: null } }))
    const acme = { 'model_gateway.account': 'acme' }
    assert.deepEqual(await points('calls'), [
      [acme, 2],
      [{ 'model_gateway.account': 'globex' }, 1],
    ])
    assert.deepEqual(await points('tokens'), [
      [{ ...acme, 'gen_ai.token.type': 'input' }, 50],
      [{ ...acme, 'gen_ai.token.type': 'output' }, 7],
    ])
    assert.deepEqual(await points('charges'), [[acme, 0.25]])
    const told = await collect()
    const units = ['calls', 'tokens', 'charges'].map(
      (name) => told.get(`model_gateway.attributed.${name}`)?.unit,
    )
    assert.deepEqual(units, ['{call}', '{token}', 'USD'])
  })

  it('is no call without a valid key, and none that asked for no model', async (t) => {
    const { calls, points } = attributing(t, ['account'])
    const charged = { billing: { charged: USD }, usage: { inputTokens: 1, outputTokens: 1 } }
    calls.note(callOf('acme', { ...charged, principal: null }))
    calls.note(callOf('acme', { ...charged, model: null }))
    for (const name of ['calls', 'tokens', 'charges']) assert.deepEqual(await points(name), [], name)
  })

  it('is a charge that is made later, but of a task whose account is not known', async (t) => {
    const { calls, points } = attributing(t, ['account', 'key', 'user', 'tag:team'])
    const known = { account: 'acme', key: 'k1', user: 'ann', tags: { team: 'search' } }
    calls.charge(taskOf(known), USD / 2n)
    calls.charge(taskOf(known), USD)
    calls.charge(taskOf({ account: 'acme' }), USD * 2n)
    calls.charge(taskOf({ key: 'k1' }), USD * 4n)
    const ofAll = {
      'model_gateway.account': 'acme',
      'model_gateway.key': 'k1',
      'model_gateway.user': 'ann',
      'model_gateway.tag.team': 'search',
    }
    assert.deepEqual(await points('charges'), [
      [ofAll, 1.5],
      [{ 'model_gateway.account': 'acme' }, 2],
    ])
    assert.deepEqual(await points('calls'), [])
  })

  it('has a label only where there is a value, and no tag that an object inherits', async (t) => {
    const { calls, points } = attributing(t, ['key', 'user', 'tag:toString', 'tag:team'])
    for (const tags of [null, undefined, {}, { own: 'x' }]) calls.note(callOf('acme', { tags }))
    calls.note(callOf('acme', { principal: { accountId: 'acme', keyId: 'k1' }, tags: { team: '' } }))
    assert.deepEqual(await points('calls'), [
      [{}, 4],
      [{ 'model_gateway.key': 'k1', 'model_gateway.tag.team': '' }, 1],
    ])
  })
})

describe('the values that are counted separately', () => {
  const ofLabel = (points: unknown[][], label: string) =>
    Object.fromEntries(points.map(([labels, value]) => [(labels as Record<string, string>)[label], value]))

  it('are as many as may be, of what callers send half by each account; those that are known stay', async (t) => {
    const { calls, points } = attributing(t, ['user'], 4)
    for (const user of ['a', 'b', 'c', 'a']) calls.note(callOf('acme', { user }))
    for (const user of ['a', 'd', 'e', 'f']) calls.note(callOf('globex', { user }))
    for (const user of ['g', 'd']) calls.note(callOf('initech', { user }))
    assert.deepEqual(ofLabel(await points('calls'), 'model_gateway.user'), {
      a: 3,
      b: 1,
      d: 2,
      e: 1,
      other: 3,
    })
  })

  it('are not halved where callers do not choose them', async (t) => {
    const { calls, points } = attributing(t, ['key'], 4)
    for (const keyId of ['k1', 'k2', 'k3', 'k4', 'k5', 'k6'])
      calls.note(callOf('acme', { principal: { accountId: 'acme', keyId } }))
    assert.deepEqual(ofLabel(await points('calls'), 'model_gateway.key'), {
      k1: 1,
      k2: 1,
      k3: 1,
      k4: 1,
      other: 2,
    })
  })
})

describe('the counters of a meter', () => {
  it('are one set for the same labels and bound, and another for others', async (t) => {
    const { meter, calls, points } = attributing(t, ['account'], 5)
    assert.equal(attributedCallsOn(meter, { labels: ['account'], maxValues: 5 }), calls)
    assert.notEqual(attributedCallsOn(meter, { labels: ['account'], maxValues: 6 }), calls)
    assert.notEqual(attributedCallsOn(meter, { labels: ['key'], maxValues: 5 }), calls)
    assert.notEqual(attributedCallsOn(collectingMeter(t).meter, { labels: ['account'], maxValues: 5 }), calls)
    calls.note(callOf('acme'))
    attributedCallsOn(meter, { labels: ['account'], maxValues: 5 }).note(callOf('acme'))
    assert.deepEqual(await points('calls'), [[{ 'model_gateway.account': 'acme' }, 2]])
  })
})
