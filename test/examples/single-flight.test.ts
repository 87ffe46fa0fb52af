import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { singleFlight } from '../../examples/gateway/single-flight.ts'
import { metricsPage } from '../../examples/gateway/telemetry/observability.ts'
import { serveApp } from '../support/app-server.ts'

test('many calls at once wait for one answer, and a later call gets a new one', async () => {
  let asked = 0
  const answers: (() => void)[] = []
  const ask = singleFlight(() => {
    const answer = ++asked
    return new Promise<number>((resolve) => answers.push(() => resolve(answer)))
  })
  const first = [ask(), ask(), ask()]
  answers.shift()?.()
  assert.deepEqual(await Promise.all(first), [1, 1, 1])
  const next = ask()
  answers.shift()?.()
  assert.equal(await next, 2)
})

test('a failure rejects all that waited, and none that asks later', async () => {
  let asked = 0
  const ask = singleFlight(async () => {
    if (++asked === 1) throw new Error('not now')
    return asked
  })
  const both = await Promise.allSettled([ask(), ask()])
  assert.deepEqual(
    both.map(({ status }) => status),
    ['rejected', 'rejected'],
  )
  assert.equal(await ask(), 2)
})

test('many scrapes at once, which need no key, cost no more than one', async (t) => {
  let collected = 0
  const collect = async () => {
    collected++
    await sleep(1000)
    return `# a scrape\n`
  }
  const server = await serveApp((app) => app.get('/metrics', metricsPage(collect, undefined)))
  t.after(() => server.close())
  const scrape = async () => (await fetch(`${server.url}/metrics`)).text()
  const texts = await Promise.all(Array.from({ length: 30 }, scrape))
  assert.deepEqual(new Set(texts), new Set(['# a scrape\n']))
  assert.ok(collected < 10, `${collected} collected`)
})
