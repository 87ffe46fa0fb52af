import assert from 'node:assert/strict'
import { spawn, spawnSync } from 'node:child_process'
import { readFile, writeFile } from 'node:fs/promises'
import { join, resolve } from 'node:path'
import { describe, it, type TestContext } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { Client } from 'pg'
import { freePort } from '../../support/free-port.ts'
import { type GatewayProcess, temporaryFolder } from '../../support/gateway-process.ts'
import { startPostgres, WITHOUT_POSTGRES } from '../../support/postgres-server.ts'
import { startRedis, WITHOUT_REDIS } from '../../support/redis-server.ts'
import { answerJson, chatAnswer, type UpstreamScript } from '../../support/scripted-upstream.ts'
import { untilAsync } from '../../support/until.ts'
import { paidGateways } from '../chaos/paid-gateways.ts'
import { steadyLoad } from '../chaos/steady-load.ts'

const RULES = resolve('examples/deploy/chart/prometheus-rules.yaml')
const WITHOUT_PROMETHEUS =
  spawnSync('prometheus', ['--version']).status === 0 ? false : 'there is no prometheus on this machine'

/** A minute of the rules takes half a second. */
const SCALE = 120
const SECONDS = { s: 1, m: 60, h: 3600 } as const
/** A busy machine needs a multiple of what the rules do. */
const PATIENCE_MS = 40_000

/** They say that this machine is busy, which it may be. */
const OF_THE_MACHINE = ['GatewayDown', 'GatewayEventLoopDelayed']

/** The rules with all their durations shortened. */
async function shortenedRules(): Promise<string> {
  return (await readFile(RULES, 'utf8')).replace(
    /(for: |\[)(\d+)([smh])\b/g,
    (_, before: string, count: string, unit: keyof typeof SECONDS) =>
      `${before}${Math.ceil((Number(count) * SECONDS[unit] * 1000) / SCALE)}ms`,
  )
}

/** Starts a Prometheus that scrapes a gateway, and returns the names of the alerts that fire now. */
async function startPrometheus(t: TestContext, { url }: GatewayProcess) {
  const folder = await temporaryFolder()
  t.after(() => folder.remove())
  await writeFile(join(folder.path, 'rules.yaml'), await shortenedRules())
  const config = {
    global: { scrape_interval: '250ms', scrape_timeout: '250ms', evaluation_interval: '250ms' },
    rule_files: ['rules.yaml'],
    scrape_configs: [
      { job_name: 'express-model-gateway', static_configs: [{ targets: [new URL(url).host] }] },
    ],
  }
  await writeFile(join(folder.path, 'prometheus.yml'), JSON.stringify(config))
  const port = await freePort()
  const server = spawn(
    'prometheus',
    [
      `--config.file=${join(folder.path, 'prometheus.yml')}`,
      `--storage.tsdb.path=${join(folder.path, 'data')}`,
      `--web.listen-address=127.0.0.1:${port}`,
    ],
    { stdio: 'ignore' },
  )
  t.after(async () => {
    const exited = new Promise((resolve) => server.once('exit', resolve))
    server.kill()
    await exited
  })
  const alerts = async () => {
    const response = await fetch(`http://127.0.0.1:${port}/api/v1/alerts`)
    const { data } = (await response.json()) as {
      data: { alerts: { state: string; labels: { alertname: string } }[] }
    }
    const names = data.alerts.filter(({ state }) => state === 'firing').map(({ labels }) => labels.alertname)
    return new Set(names.filter((name) => !OF_THE_MACHINE.includes(name)))
  }
  const isReady = () =>
    alerts().then(
      () => true,
      () => false,
    )
  await untilAsync(isReady, 'Prometheus', PATIENCE_MS)
  return alerts
}

const LINE_DOWN = { fires: ['GatewayLineDown', 'GatewayAllLinesDown'], besides: ['GatewayErrors'] }
const LEDGER_AWAY = ['GatewayLedgerAway', 'GatewayNotReady']
/** Follow from a database that does not answer, as its calls and the fault last. */
const BESIDE_LEDGER_AWAY = [
  ...LEDGER_AWAY,
  'GatewayErrors',
  'GatewayChargesQueued',
  'GatewayChargesSetAside',
  'GatewayStoreAway',
  'GatewayDatabaseBusy',
  'GatewayLeasesLost',
  // Half a second, which a minute of the rules takes here, may pass before the ledger counts as away.
  'GatewayRowsLocked',
]

interface Fault {
  readonly name: string
  readonly begin: () => unknown
  readonly end: () => unknown
  /** The alerts that must fire. */
  readonly fires: readonly string[]
  /** Those that may, because the fault has their effect, too. */
  readonly besides?: readonly string[]
}

describe('the alerts in a Prometheus', {
  skip: WITHOUT_PROMETHEUS || WITHOUT_POSTGRES || WITHOUT_REDIS,
  timeout: 600_000,
}, () => {
  it('fire for their faults and no others, and end with them', async (t) => {
    const [postgres, redis] = await Promise.all([startPostgres(), startRedis()])
    t.after(() => Promise.all([postgres.close(), redis.close()]))
    const databaseUrl = await postgres.createDatabase()
    const world = await paidGateways(
      t,
      databaseUrl,
      {
        accounts: ['acme', 'globex'].map((id) => ({ id, balance: '1000' })),
        keys: ['acme', 'globex'].map((account) => ({ id: account, account })),
        price: { perRequest: '0.01' },
        timeouts: { connectMs: 2000, firstByteMs: 1000 },
      },
      (res) => chatAnswer(res),
      { REDIS_URL: `redis://127.0.0.1:${redis.port}` },
    )
    const gateway = await world.start()
    const firing = await startPrometheus(t, gateway)
    let isOver = false
    const load = ['acme', 'globex'].map(async (key) => {
      while (!isOver) await steadyLoad(gateway, { key }, sleep(500), 100)
    })

    const provider = (script: UpstreamScript) => ({
      begin() {
        world.upstream.script = script
      },
      end() {
        world.upstream.script = (res) => chatAnswer(res)
      },
    })
    const locked = (statement: string) => {
      const operator = new Client({ connectionString: databaseUrl })
      return {
        async begin() {
          await operator.connect()
          await operator.query('begin')
          await operator.query(statement)
        },
        end: () => operator.end(),
      }
    }
    const faults: readonly Fault[] = [
      { name: 'a provider that hangs', ...provider(() => {}), ...LINE_DOWN },
      {
        name: 'one that goes on answering 500',
        ...provider((res) => answerJson(res, 500, {})),
        fires: [...LINE_DOWN.fires, ...LINE_DOWN.besides],
      },
      { name: 'one that answers 503', ...provider((res) => answerJson(res, 503, {})), ...LINE_DOWN },
      { name: 'one that cuts', ...provider((res) => void res.socket?.destroy()), ...LINE_DOWN },
      { name: 'one that is slow', ...provider((res) => void setTimeout(chatAnswer, 400, res)), fires: [] },
      {
        name: 'a Redis that is gone',
        begin: () => redis.kill(),
        end: () => redis.restart(),
        fires: ['GatewayStoreAway'],
      },
      {
        name: 'a locked row',
        ...locked("select 1 from wallets where id = 'account:acme' for update"),
        fires: ['GatewayRowsLocked'],
        besides: ['GatewayErrors', 'GatewayChargesQueued', 'GatewayChargesSetAside'],
      },
      {
        name: 'a locked table',
        ...locked('lock table wallets in access exclusive mode'),
        fires: ['GatewayLedgerAway'],
        besides: BESIDE_LEDGER_AWAY,
      },
      {
        name: 'a frozen database',
        begin: () => postgres.freeze(),
        end: () => postgres.thaw(),
        fires: LEDGER_AWAY,
        besides: BESIDE_LEDGER_AWAY,
      },
      {
        name: 'a database that is away',
        begin: () => postgres.stop(),
        end: () => postgres.start(),
        fires: LEDGER_AWAY,
        besides: BESIDE_LEDGER_AWAY,
      },
    ]
    for (const { name, begin, end, fires, besides = [] } of faults)
      await t.test(name, async (t) => {
        await untilAsync(async () => (await firing()).size === 0, 'no alert before', PATIENCE_MS)
        const seen = new Set<string>()
        const look = async () => {
          for (const alert of await firing()) seen.add(alert)
        }
        const begun = performance.now()
        await begin()
        if (fires.length === 0) for (let i = 0; i < 20; i++) await sleep(250).then(look)
        await untilAsync(
          async () => {
            await look()
            return fires.every((alert) => seen.has(alert))
          },
          `${fires}`,
          PATIENCE_MS,
        )
        const firedAt = performance.now()
        await end()
        await untilAsync(
          async () => {
            await look()
            return (await firing()).size === 0
          },
          'the end of the alerts',
          PATIENCE_MS,
        )
        const times = [firedAt - begun, performance.now() - firedAt].map((ms) => (ms / 1000).toFixed(1))
        t.diagnostic(`fired after ${times[0]} s, ended after ${times[1]} s: ${[...seen]}`)
        assert.deepEqual(
          [...seen].filter((alert) => ![...fires, ...besides].includes(alert)),
          [],
        )
      })
    isOver = true
    await Promise.all(load)
  })
})
