import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { writeFile } from 'node:fs/promises'
import { join, resolve } from 'node:path'
import { describe, it } from 'node:test'
import { parse } from 'yaml'
import { chat, post, startGatewayProcess, temporaryFolder } from '../../support/gateway-process.ts'

const RULES = resolve('examples/deploy/chart/prometheus-rules.yaml')
const WITHOUT_PROMTOOL =
  spawnSync('promtool', ['--version']).status === 0
    ? false
    : 'there is no promtool on this machine (Debian: prometheus)'

interface Rule {
  readonly alert: string
  readonly expr: string
  readonly labels: Readonly<Record<string, string>>
  readonly annotations: Readonly<Record<string, string>>
}

const { groups } = parse(readFileSync(RULES, 'utf8')) as { groups: { rules: Rule[] }[] }
const rules = groups.flatMap((group) => group.rules)

type Values = Readonly<Record<string, string>>

const lineIs = (availability: string, line: string, worker: string): string =>
  `model_gateway_line_availability{model_gateway_availability="${availability}",model_gateway_line="${line}",worker="${worker}"}`

/** The alert, the series for which it fires, with the labels that it has then, and those for which it must not. */
const CASES: readonly (readonly [alert: string, fires: Values, labels: Values, quiet: Values])[] = [
  [
    'GatewayDown',
    { 'up{job="express-model-gateway",instance="a"}': '1 0x20' },
    { job: 'express-model-gateway', instance: 'a' },
    { 'up{job="express-model-gateway",instance="a"}': '1 0 1x20', 'up{job="other",instance="b"}': '0x20' },
  ],
  [
    'GatewayWorkerSilent',
    { 'model_gateway_worker_answered{worker="2"}': '0x20' },
    { worker: '2' },
    { 'model_gateway_worker_answered{worker="2"}': '1 0 1x20' },
  ],
  [
    'GatewayNotReady',
    {
      'model_gateway_ready{instance="a",worker="1"}': '1x20',
      'model_gateway_ready{instance="a",worker="2"}': '0x20',
    },
    { instance: 'a' },
    { 'model_gateway_ready{instance="a"}': '0x18 1x20' },
  ],
  [
    'GatewayLedgerAway',
    { 'model_gateway_store_away{model_gateway_store="ledger",instance="a",worker="1"}': '1x20' },
    { instance: 'a', model_gateway_store: 'ledger' },
    {
      'model_gateway_store_away{model_gateway_store="ledger",instance="a"}': '0x20',
      'model_gateway_store_away{model_gateway_store="tickets",instance="a"}': '1x20',
    },
  ],
  [
    'GatewayStoreAway',
    { 'model_gateway_store_away{model_gateway_store="limits",instance="a"}': '1x20' },
    { instance: 'a', model_gateway_store: 'limits' },
    { 'model_gateway_store_away{model_gateway_store="limits",instance="a"}': '0 1 0x20' },
  ],
  [
    'GatewayErrors',
    {
      'model_gateway_calls_total{http_response_status_code="502"}': '0+6x30',
      'model_gateway_calls_total{http_response_status_code="200"}': '0+94x30',
    },
    {},
    {
      'model_gateway_calls_total{http_response_status_code="503"}': '0+4x30',
      'model_gateway_calls_total{http_response_status_code="429"}': '0+50x30',
      'model_gateway_calls_total{http_response_status_code="200"}': '0+94x30',
    },
  ],
  [
    'GatewayLineDown',
    {
      [lineIs('down', 'l', '1')]: '1x30',
      [lineIs('up', 'l', '1')]: '0x30',
      [lineIs('down', 'l', '2')]: '0x30',
      [lineIs('up', 'l', '2')]: '0x30',
      [lineIs('up', 'm', '2')]: '1x30',
    },
    { model_gateway_line: 'l' },
    {
      [lineIs('down', 'l', '1')]: '1x30',
      [lineIs('up', 'l', '1')]: '0x30',
      [lineIs('up', 'l', '2')]: '1x30',
      [lineIs('unknown', 'm', '1')]: '1x30',
      [lineIs('down', 'm', '1')]: '0x30',
    },
  ],
  [
    'GatewayAllLinesDown',
    {
      [lineIs('down', 'l', '1')]: '1x30',
      [lineIs('down', 'm', '1')]: '1x30',
      [lineIs('down', 'unused', '1')]: '0x30',
      [lineIs('up', 'l', '1')]: '0x30',
    },
    {},
    { [lineIs('down', 'l', '1')]: '1x30', [lineIs('up', 'm', '1')]: '1x30' },
  ],
  [
    'GatewayChargesQueued',
    { 'model_gateway_settlements_age{instance="a",worker="1"}': '0+20x30' },
    { instance: 'a' },
    { 'model_gateway_settlements_age{instance="a"}': '0 60 0x30' },
  ],
  [
    'GatewayChargesSetAside',
    { 'model_gateway_settlements_set_aside{instance="a",worker="1"}': '1x30' },
    { instance: 'a' },
    { 'model_gateway_settlements_set_aside{instance="a"}': '0x30' },
  ],
  [
    'GatewayRowsLocked',
    { 'model_gateway_settlements_held_accounts{instance="a",worker="1"}': '1x30' },
    { instance: 'a' },
    {
      'model_gateway_settlements_held_accounts{instance="a"}': '1x18 0x12',
      'model_gateway_settlements_held_accounts{instance="b"}': '1x30',
      'model_gateway_store_away{model_gateway_store="ledger",instance="b"}': '1x30',
    },
  ],
  [
    'GatewayLogEntriesDropped',
    { 'model_gateway_call_log_dropped_total{instance="a"}': '0x15 1x15' },
    { instance: 'a' },
    { 'model_gateway_call_log_dropped_total{instance="a"}': '7x30' },
  ],
  [
    'GatewayLeasesLost',
    { 'model_gateway_leases_lost_total{instance="a"}': '0x15 1x15' },
    { instance: 'a' },
    { 'model_gateway_leases_lost_total{instance="a"}': '3x30' },
  ],
  [
    'GatewayEventLoopDelayed',
    { 'nodejs_eventloop_delay_p99{instance="a",worker="1"}': '0.4x30' },
    { instance: 'a' },
    { 'nodejs_eventloop_delay_p99{instance="a"}': '0.4 0.02x30' },
  ],
  [
    'GatewayHeapFull',
    {
      'v8js_memory_heap_used{instance="a",worker="1"}': '95x30',
      'v8js_memory_heap_limit{instance="a",worker="1"}': '100x30',
    },
    { instance: 'a' },
    { 'v8js_memory_heap_used{instance="a"}': '80x30', 'v8js_memory_heap_limit{instance="a"}': '100x30' },
  ],
  [
    'GatewayDatabaseBusy',
    { 'db_client_connection_pending_requests{db_client_connection_pool_name="money",instance="a"}': '60x30' },
    { instance: 'a', db_client_connection_pool_name: 'money' },
    {
      'db_client_connection_pending_requests{db_client_connection_pool_name="money",instance="a"}': '60 3x30',
    },
  ],
  [
    'GatewayWebhooksBehind',
    { 'model_gateway_webhook_age{instance="a",worker="1"}': '3000+60x30' },
    {},
    { 'model_gateway_webhook_age{instance="a"}': '3000+60x15 0x15' },
  ],
  [
    'GatewayWebhooksGivenUp',
    { 'model_gateway_webhook_deliveries_total{instance="a",model_gateway_outcome="given_up"}': '0x15 1x15' },
    {},
    {
      'model_gateway_webhook_deliveries_total{instance="a",model_gateway_outcome="given_up"}': '3x30',
      'model_gateway_webhook_deliveries_total{instance="a",model_gateway_outcome="failed"}': '0+9x30',
    },
  ],
  [
    'GatewayWrongAdminTokens',
    { 'model_gateway_admin_wrong_tokens_total{instance="a"}': '0+5x30' },
    {},
    { 'model_gateway_admin_wrong_tokens_total{instance="a"}': '0+1x30' },
  ],
]

const AT = '20m'
const seriesOf = (values: Values) =>
  Object.entries(values).map(([series, each]) => ({ series, values: each }))

describe('the alert rules for Prometheus', () => {
  it('are valid, and each fires when it should and at no other time', {
    skip: WITHOUT_PROMTOOL,
  }, async (t) => {
    const folder = await temporaryFolder()
    t.after(() => folder.remove())
    assert.deepEqual(CASES.map(([alert]) => alert).sort(), rules.map(({ alert }) => alert).sort())
    const tests = CASES.flatMap(([alert, fires, labels, quiet]) => {
      const rule = rules.find((each) => each.alert === alert) ?? assert.fail(alert)
      const expected = { exp_labels: { ...labels, ...rule.labels }, exp_annotations: rule.annotations }
      const test = (values: Values, exp_alerts: object[]) => ({
        name: alert,
        interval: '1m',
        input_series: seriesOf(values),
        alert_rule_test: [{ eval_time: AT, alertname: alert, exp_alerts }],
      })
      return [test(fires, [expected]), test(quiet, [])]
    })
    const file = join(folder.path, 'tests.yaml')
    await writeFile(file, JSON.stringify({ rule_files: [RULES], evaluation_interval: '1m', tests }))
    for (const args of [
      ['check', 'rules', RULES],
      ['test', 'rules', file],
    ]) {
      const { status, stdout, stderr } = spawnSync('promtool', args, { encoding: 'utf8' })
      assert.equal(status, 0, stdout + stderr)
    }
  })

  it('have a severity, a summary, and an item of the page that their runbook names', () => {
    const page = readFileSync('docs/troubleshooting.md', 'utf8')
    assert.match(page, /^## Alerts$/m)
    for (const { alert, labels, annotations } of rules) {
      assert.match(labels.severity ?? '', /^(critical|warning)$/)
      assert.ok(annotations.summary)
      assert.equal(annotations.runbook, 'docs/troubleshooting.md#alerts')
      assert.match(page, new RegExp(`^- .*\`${alert}\`.*: .`, 'm'), alert)
    }
  })

  it('name only metrics and labels that a gateway has', async (t) => {
    const folder = await temporaryFolder()
    t.after(() => folder.remove())
    const gateway = await startGatewayProcess({
      DATABASE_URL: `sqlite:${join(folder.path, 'gateway.db')}`,
      ADMIN_TOKEN: 'admin-of-the-tests',
      WORKERS: '2',
    })
    t.after(() => gateway.stop())
    await (await post(gateway.url, chat())).arrayBuffer()
    const text = await (await fetch(`${gateway.url}/metrics`)).text()
    for (const { expr } of rules.filter(({ alert }) => alert !== 'GatewayDown'))
      for (const [, metric = '', matchers = ''] of expr.matchAll(
        /\b((?:model_gateway|gen_ai|nodejs|v8js|process|db)_\w+)(?:\{([^}]*)\})?(?=[\s)[]|$)/g,
      )) {
        if (/^(model_gateway_(store|line|availability)|db_client_connection_pool_name)$/.test(metric))
          continue
        const samples = text
          .split('\n')
          .filter((line) => line.startsWith(`${metric}{`) || line.startsWith(`${metric} `))
        assert.ok(samples.length > 0, `${metric} is not there: ${expr}`)
        for (const [, label = ''] of matchers.matchAll(/(\w+)(?:=~?|!~|!=)/g))
          assert.ok(
            samples.some((line) => line.includes(`${label}="`)),
            `${metric} has no ${label}`,
          )
      }
  })
})
