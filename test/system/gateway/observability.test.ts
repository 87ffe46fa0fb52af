import assert from 'node:assert/strict'
import { join } from 'node:path'
import { test } from 'node:test'
import { startCollector } from '../../middleware/telemetry/collector.ts'
import { chat, post, runToExit, startGatewayProcess, temporaryFolder } from '../../support/gateway-process.ts'
import { closedPort } from '../../support/scripted-upstream.ts'
import { untilAsync } from '../../support/until.ts'

test('/metrics answers without a key; a collector is sent metrics and traces, the last of them at the end', async (t) => {
  const collector = await startCollector(t)
  const gateway = await startGatewayProcess({
    OTEL_EXPORTER_OTLP_ENDPOINT: collector.url,
    OTEL_TRACES_SAMPLER_ARG: '1',
  })
  t.after(() => gateway.stop())
  const answer = await post(gateway.url, chat())
  assert.equal(answer.status, 200)
  await answer.text()
  const scrape = await fetch(`${gateway.url}/metrics`)
  assert.equal(scrape.status, 200)
  assert.match(scrape.headers.get('content-type') ?? '', /^text\/plain; version=0\.0\.4/)
  assert.match(await scrape.text(), /^model_gateway_store_away\{model_gateway_store="ledger"\} 0$/m)
  gateway.kill('SIGTERM')
  assert.equal((await gateway.exited).code, 0)
  assert.ok(collector.metrics.has('model_gateway.calls'))
  const requestIds = collector.spans.map(({ attributes }) => attributes['model_gateway.request_id'])
  assert.ok(requestIds.includes(answer.headers.get('x-request-id') ?? ''))
})

test('a collector receives the processes that serve one port separately', async (t) => {
  const collector = await startCollector(t)
  const folder = await temporaryFolder()
  t.after(() => folder.remove())
  const gateway = await startGatewayProcess({
    OTEL_EXPORTER_OTLP_ENDPOINT: collector.url,
    DATABASE_URL: `sqlite:${join(folder.path, 'gateway.db')}`,
    WORKERS: '2',
  })
  t.after(() => gateway.stop())
  const both = async () => (await fetch(`${gateway.url}/metrics`)).text()
  await untilAsync(async () => (await both()).includes('model_gateway_worker_answered{worker="2"} 1'), 'both')
  gateway.kill('SIGTERM')
  assert.equal((await gateway.exited).code, 0)
  assert.equal(collector.instances.size, 2)
  assert.ok(!collector.instances.has(undefined))
})

test('a collector that is away is logged, and holds up neither a call nor the end', async (t) => {
  const gateway = await startGatewayProcess({
    OTEL_EXPORTER_OTLP_ENDPOINT: `http://127.0.0.1:${await closedPort()}`,
    OTEL_TRACES_SAMPLER_ARG: '1',
  })
  t.after(() => gateway.stop())
  assert.equal((await post(gateway.url, chat())).status, 200)
  gateway.kill('SIGTERM')
  assert.equal((await gateway.exited).code, 0)
  assert.ok(
    gateway.logged.some(({ msg }) => msg.startsWith('telemetry: ')),
    gateway.stdout,
  )
})

test('an unusable collector, sampler or share is a fault of the environment', async () => {
  const exit = await runToExit({
    OTEL_EXPORTER_OTLP_ENDPOINT: 'collector:4318',
    OTEL_TRACES_SAMPLER_ARG: '10',
    OTEL_TRACES_SAMPLER: 'some',
  })
  assert.equal(exit.code, 1)
  assert.match(
    exit.stderr,
    /^OTEL_EXPORTER_OTLP_ENDPOINT: must be .*\nOTEL_TRACES_SAMPLER_ARG: must be a share.*\nOTEL_TRACES_SAMPLER: must be one of always_on, /,
  )
  assert.doesNotMatch(exit.stderr, /4318/)
})
