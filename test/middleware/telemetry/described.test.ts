import assert from 'node:assert/strict'
import { readFile } from 'node:fs/promises'
import { type TestContext, test } from 'node:test'
import { chatBody } from '../../support/gateway.ts'
import { answerJson, chatAnswer, chatEvents, startUpstream, stream } from '../../support/scripted-upstream.ts'
import { startObserved } from './observed-gateway.ts'
import type { Scrape } from './scrape.ts'

const CHAT = '/v1/chat/completions'
/** Enough at once for a retry budget. */
const MANY = 40

/** A scrape of a gateway to which everything has happened that there is a metric of. */
async function eventfulScrape(t: TestContext): Promise<Scrape> {
  let serves = true
  const failing = await startUpstream((res) => answerJson(res, 500, {}))
  const serving = await startUpstream((res, { json }) => {
    if (!serves) return answerJson(res, 500, {})
    return json.stream ? stream(res, chatEvents(['Hello'])) : chatAnswer(res)
  })
  const silent = await startUpstream(() => {})
  t.after(() => Promise.all([failing.close(), serving.close(), silent.close()]))
  const never = { minimumCalls: 1000 }
  const gateway = await startObserved(t, {
    stores: { connections: () => ({ main: { used: 1, idle: 1, waiting: 0 } }) },
    lines: [
      { url: failing.url, circuit: never },
      { url: serving.url, circuit: never },
      { url: silent.url, models: { slow: 'slow' }, timeouts: { firstByteMs: 20 } },
    ],
    config: {
      accounts: [{ id: 'acme', balance: '1000' }],
      keys: [
        { id: 'key', account: 'acme', secret: 'sk-observed' },
        { id: 'limited', account: 'acme', secret: 'sk-limited', limits: { rpm: 1 } },
      ],
      metrics: { labels: ['account'] },
      guards: [{ name: 'house', patterns: { mask: ['never said'] } }],
      models: [
        { id: 'chat', kind: 'chat', price: { perRequest: '0.01' } },
        { id: 'slow', kind: 'chat', price: { perRequest: '0.01' }, cache: { ttlSeconds: 60 } },
      ],
    },
  })
  const limited = { authorization: 'Bearer sk-limited' }
  await gateway.post(CHAT, chatBody(), limited)
  await gateway.post(CHAT, chatBody(), limited)
  await (await gateway.post(CHAT, chatBody({ stream: true }))).text()
  await gateway.post(CHAT, chatBody({ provider: { only: ['provider-1'] } }), { 'idempotency-key': 'k' })
  await gateway.post(CHAT, chatBody({ model: 'slow' }))
  serves = false
  await Promise.all(Array.from({ length: MANY }, () => gateway.post(CHAT, chatBody())))
  return gateway.scrape()
}

/** As the exporter names it. */
const exported = (metric: string, kind: string): string =>
  metric.replaceAll('.', '_') + (kind.startsWith('counter') ? '_total' : '')

/** The selectors in a query: each metric with the labels that are asked of it. */
function selectorsIn(query: string): { metric: string; labels: string[] }[] {
  const grouped = [...query.matchAll(/\bby \(([^)]*)\)/g)].flatMap(([, labels = '']) => labels.split(/,\s*/))
  const bare = query.replaceAll(/\bby \([^)]*\)/g, '')
  return [...bare.matchAll(/\b((?:gen_ai|model_gateway)_\w+)(?:\{([^}]*)\})?(?![\w"=!])/g)].map(
    ([, metric = '', matchers = '']) => ({
      metric,
      labels: [...grouped, ...[...matchers.matchAll(/(\w+)\s*(?:=~?|!=)/g)].map(([, label = '']) => label)],
    }),
  )
}

test('the dashboard asks for no metric that a scrape does not contain, and the README names all of them', async (t) => {
  const scrape = await eventfulScrape(t)
  const families = new Set(
    [...scrape.text.matchAll(/^# TYPE ((?:gen_ai|model_gateway|db)_\w+)/gm)].map(([, name = '']) => name),
  )

  await t.test('every query of the dashboard', async () => {
    const dashboard = await readFile('examples/gateway/grafana-dashboard.json', 'utf8')
    const queries = [...dashboard.matchAll(/"expr": ("(?:[^"\\]|\\.)*")/g)].map(([, json = '']) =>
      JSON.parse(json),
    )
    assert.ok(queries.length > 30)
    for (const query of queries) {
      const selectors = selectorsIn(query)
      assert.ok(selectors.length > 0, query)
      for (const { metric, labels } of selectors) {
        const samples = scrape.of(metric)
        assert.ok(samples.length > 0, `${metric} is not told: ${query}`)
        for (const label of labels) {
          const has = samples.some((sample) => label in sample.labels)
          assert.ok(has, `${metric} has no label ${label}: ${query}`)
        }
      }
    }
  })

  await t.test('every metric that is described, and no other', async () => {
    const readme = await readFile('lib/middleware/telemetry/README.md', 'utf8')
    const rows = [...readme.matchAll(/^- (histogram|counter|gauge|up-down) (`[\w.]+`(?:,\s+`[\w.]+`)*)/gm)]
    const described = rows.flatMap(([, kind = '', names = '']) =>
      [...names.matchAll(/`([\w.]+)`/g)].map(([, metric = '']) => exported(metric, kind)),
    )
    assert.deepEqual([...families].toSorted(), described.toSorted())
  })
})
