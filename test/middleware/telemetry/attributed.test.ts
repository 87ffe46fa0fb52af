import assert from 'node:assert/strict'
import { describe, it, type TestContext } from 'node:test'
import { metrics } from '@opentelemetry/api'
import { chatBody } from '../../support/gateway.ts'
import { chatAnswer, startUpstream } from '../../support/scripted-upstream.ts'
import { startObserved } from './observed-gateway.ts'

const CHAT = '/v1/chat/completions'
const CALLS = 'model_gateway_attributed_calls_total'
const CHARGES = 'model_gateway_attributed_charges_total'

async function start(t: TestContext, labels: readonly string[], maxLabelValues = 10) {
  const upstream = await startUpstream((res) => chatAnswer(res))
  t.after(() => upstream.close())
  const observed = await startObserved(t, {
    lines: [{ url: upstream.url }],
    config: {
      accounts: [{ id: 'acme' }, { id: 'globex' }, { id: 'initech' }],
      keys: [
        { id: 'key_acme', account: 'acme', secret: 'sk-observed', tags: { team: 'search' } },
        { id: 'key_globex', account: 'globex', secret: 'sk-globex' },
        { id: 'key_initech', account: 'initech', secret: 'sk-initech' },
      ],
      metrics: { labels, maxLabelValues },
    },
  })
  const ask = async (user?: string, key = 'sk-observed', tags?: string) => {
    const headers = { authorization: `Bearer ${key}`, ...(tags && { 'x-gateway-tags': tags }) }
    const answer = await observed.post(CHAT, chatBody(user === undefined ? {} : { user }), headers)
    await answer.arrayBuffer()
    return answer.status
  }
  return { ...observed, ask }
}

describe('the metrics by what calls are attributed to', () => {
  it('count calls, tokens and charges by each configured label, and equal those by model', async (t) => {
    const { ask, scrape, get } = await start(t, ['account', 'key', 'user', 'tag:team'])
    await ask('ann')
    await ask('ann')
    await ask('bob', 'sk-globex', 'team=ads')
    await ask(undefined, 'sk-globex')
    assert.equal(await ask('eve', 'sk-nobody'), 401)
    await (await get('/v1/models')).arrayBuffer()
    const seen = await scrape()
    const of = (account: string, more: object) => ({
      model_gateway_account: account,
      model_gateway_key: `key_${account}`,
      ...more,
    })
    const rows = seen.of(CALLS).map(({ labels, value }) => [labels, value])
    assert.deepEqual(
      new Set(rows.map((row) => JSON.stringify(row))),
      new Set(
        [
          [of('acme', { model_gateway_user: 'ann', model_gateway_tag_team: 'search' }), 2],
          [of('globex', { model_gateway_user: 'bob', model_gateway_tag_team: 'ads' }), 1],
          [of('globex', {}), 1],
        ].map((row) => JSON.stringify(row)),
      ),
    )
    assert.equal(seen.sum(CHARGES, { model_gateway_account: 'acme' }), 0.02)
    assert.equal(seen.sum(CHARGES), seen.sum('model_gateway_charges_total'))
    assert.equal(seen.sum('model_gateway_attributed_tokens_total'), seen.sum('model_gateway_tokens_total'))
  })

  it('are not there unless the config names labels', async (t) => {
    const { ask, scrape } = await start(t, [])
    await ask('ann')
    assert.doesNotMatch((await scrape()).text, /attributed|ann|acme/)
  })

  it('have a bounded number of values and sets, of which one account takes no other the half', async (t) => {
    const { ask, scrape } = await start(t, ['account', 'user', 'tag:team'])
    for (let i = 0; i < 40; i++) await ask(`evil-${i}`, 'sk-globex', `team=evil-${i}`)
    for (let i = 0; i < 5; i++) await ask(`ours-${i}`)
    const seen = await scrape()
    const users = seen.valuesOf('model_gateway_user')
    assert.deepEqual([users.size, users.has('other')], [11, true])
    for (let i = 0; i < 5; i++) assert.equal(seen.sum(CALLS, { model_gateway_user: `ours-${i}` }), 1)
    assert.equal(seen.sum(CALLS, { model_gateway_account: 'globex', model_gateway_user: 'other' }), 35)
    assert.equal(seen.sum(CALLS), 45)
  })

  it('keep account and key, and only those, of what is in too many combinations', async (t) => {
    const max = 8
    const { ask, scrape } = await start(t, ['account', 'key', 'user', 'tag:team', 'tag:env'], max)
    let calls = 0
    const flood = async (prefix: string, key: string) => {
      for (const user of 'abcd')
        for (const team of 'abcd')
          for (const env of 'abcd') {
            await ask(prefix + user, key, `team=${prefix}${team},env=${prefix}${env}`)
            calls++
          }
    }
    await flood('g', 'sk-globex')
    await ask('a1', 'sk-observed', 'team=t1,env=e1')
    calls++
    const half = await scrape()
    assert.equal(half.of(CALLS).length, 5 * max + 2)
    assert.equal(half.sum(CALLS, { model_gateway_account: 'globex' }), 64)
    assert.equal(half.sum(CALLS, { model_gateway_account: 'acme', model_gateway_user: 'a1' }), 1)
    await flood('n', 'sk-initech')
    await ask('a2', 'sk-observed', 'team=t1,env=e1')
    calls++
    const full = await scrape()
    assert.ok(full.of(CALLS).length <= 10 * max + 3, `${full.of(CALLS).length} series`)
    assert.equal(full.sum(CALLS, { model_gateway_account: 'initech', model_gateway_key: 'key_initech' }), 64)
    assert.equal(full.sum(CALLS, { model_gateway_account: 'acme', model_gateway_key: 'key_acme' }), 2)
    assert.ok(!full.valuesOf('model_gateway_account').has('other'))
    assert.ok(full.valuesOf('model_gateway_user').has('other'))
    assert.equal(full.sum(CALLS), calls)
  })

  it('lose nothing however many series they make', async (t) => {
    const { scrape } = await start(t, [])
    const meter = metrics.getMeter('series')
    const added = meter.createCounter('added')
    const observed = meter.createObservableCounter('observed')
    const series = Array.from({ length: 3000 }, (_, i) => ({ account: `a${i}` }))
    observed.addCallback((result) => {
      for (const labels of series) result.observe(2, labels)
    })
    for (const labels of series) added.add(2, labels)
    for (const name of ['added_total', 'observed_total']) {
      const seen = await scrape()
      assert.deepEqual([seen.of(name).length, seen.sum(name)], [3000, 6000], name)
    }
  })
})
