import assert from 'node:assert/strict'
import { test } from 'node:test'
import { MergedMetrics } from '../../examples/gateway/workers/merged-metrics.ts'
import { Scrape } from '../middleware/telemetry/scrape.ts'

const CALLS = 'model_gateway_attributed_calls_total'
const COMMON = 'model_gateway_calls_total'
const MAX = 10_000

/** The page of a worker that has counted one call for each of these labels. */
function pageOf(labels: readonly string[]): string {
  const calls = labels.map((each) => `${CALLS}{${each}} 1`)
  return [`# TYPE ${COMMON} counter`, `${COMMON} ${labels.length}`, `# TYPE ${CALLS} counter`, ...calls].join(
    '\n',
  )
}

/** The metrics after workers have served and ended, one after the other. */
function afterEnds(workers: number, labelsOf: (worker: number, i: number) => string): Scrape {
  const metrics = new MergedMetrics<number>()
  for (let worker = 0; worker < workers; worker++) {
    const text = pageOf(Array.from({ length: MAX / 2 }, (_, i) => labelsOf(worker, i)))
    metrics.merge(new Map([[worker, { number: 1, text }]]))
    metrics.end(worker)
  }
  const page = new Scrape(metrics.merge(new Map()))
  assert.equal(page.sum(CALLS), (workers * MAX) / 2)
  assert.equal(page.sum(COMMON), (workers * MAX) / 2)
  return page
}

test('figures of callers do not add up over the ends of workers, and nothing counted is lost', () => {
  const page = afterEnds(6, (worker, i) => {
    const odd = '\\"},model_gateway_account=\\"\\\\'
    const sent = `model_gateway_user="u${worker}-${i}${odd}",model_gateway_tag_team="t${i}${odd}"`
    return `model_gateway_account="a${i % 2}",model_gateway_key="k${i % 2}",${sent}`
  })
  assert.equal(page.of(CALLS).length, MAX + 2)
  for (const n of [0, 1]) {
    const own = { model_gateway_account: `a${n}`, model_gateway_key: `k${n}` }
    assert.equal(page.sum(CALLS, own), 1.5 * MAX)
    const other = { ...own, model_gateway_user: 'other', model_gateway_tag_team: 'other' }
    assert.equal(page.sum(CALLS, other), MAX)
  }
})

test('nor do accounts and keys', () => {
  const page = afterEnds(
    6,
    (worker, i) => `model_gateway_account="a${worker}-${i}",model_gateway_key="k${worker}-${i}"`,
  )
  assert.equal(page.of(CALLS).length, 2 * MAX + 1)
  assert.equal(page.sum(CALLS, { model_gateway_account: 'other', model_gateway_key: 'other' }), MAX)
})

test('series of what no caller sent all stay', () => {
  const metrics = new MergedMetrics<string>()
  const series = Array.from({ length: 2 * MAX }, (_, i) => `${COMMON}{gen_ai_request_model="m${i}"} 1`)
  for (const worker of ['one', 'two']) {
    metrics.merge(
      new Map([[worker, { number: 1, text: [`# TYPE ${COMMON} counter`, ...series].join('\n') }]]),
    )
    metrics.end(worker)
  }
  const page = new Scrape(metrics.merge(new Map()))
  assert.deepEqual([page.of(COMMON).length, page.sum(COMMON)], [2 * MAX, 4 * MAX])
})
