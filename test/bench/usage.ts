// How long the reports of a month of an account with many calls take: node test/bench/usage.ts --help
import { mkdtemp, rm } from 'node:fs/promises'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import express from 'express'
import { tagsOf } from '../../lib/core/catalog/index.ts'
import { HOUR_MS, type UsageShare } from '../../lib/core/usage/index.ts'
import { usageRoutes } from '../../lib/endpoints/usage/index.ts'
import { beginCall } from '../../lib/middleware/begin-call/index.ts'
import { openDatabase, SqlUsageStore } from '../../lib/stores/sql/index.ts'
import { UsageTally } from '../../lib/stores/sql/usage/usage-tally.ts'
import { startPostgres, WITHOUT_POSTGRES } from '../support/postgres-server.ts'
import { median } from './statistics.ts'

const { values: flags } = parseArgs({
  options: {
    calls: { type: 'string', default: '10000000' },
    users: { type: 'string', default: '500' },
    seed: { type: 'string', default: '1' },
    rounds: { type: 'string', default: '9' },
    engines: { type: 'string', default: 'sqlite,postgres' },
    help: { type: 'boolean', default: false },
  },
})
if (flags.help) {
  console.log('--calls and --users of the account, --seed, --rounds, --engines sqlite,postgres')
  process.exit()
}
const [calls, users, rounds] = [Number(flags.calls), Number(flags.users), Number(flags.rounds)]

const START = Date.UTC(2026, 0)
const DAYS = 31
const [KEYS, MODELS, LINES, TEAMS] = [20, 8, 6, 10]
/** How much busier an hour of the day is than the quietest, from midnight on. */
const BUSY = [1, 1, 1, 1, 1, 1, 2, 3, 5, 7, 8, 8, 7, 8, 8, 8, 7, 6, 5, 4, 3, 2, 2, 1]
const BUSY_SUM = BUSY.reduce((sum, each) => sum + each)
/** How long calls take, in milliseconds. */
const DURATIONS = [80, 700, 700, 3000, 20_000]

let state = Number(flags.seed)

function random(): number {
  state = (state + 0x6d2b79f5) | 0
  let t = Math.imul(state ^ (state >>> 15), 1 | state)
  t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t
  return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32
}

/** How often something happens that happens so often on average. */
function countOf(mean: number): number {
  if (mean > 30)
    return Math.max(0, Math.round(mean + Math.sqrt(mean) * (random() + random() + random() - 1.5) * 2))
  let count = 0
  for (let left = Math.exp(-mean), at = random(); at > left; at *= random()) count++
  return count
}

/** Which calls an account makes, and how many of all: each team has two keys and three models, each of them on two lines. */
function mixOf(account: string) {
  const mix: { share: number; of: Omit<UsageShare, 'at'> }[] = []
  for (let user = 0; user < users; user++) {
    const team = user % TEAMS
    for (let model = 0; model < 3; model++) {
      for (const [line, often] of [
        [0, 0.9],
        [1, 0.1],
      ] as const) {
        const name = (team + model) % MODELS
        const isProduction = (user + model) % 2
        const of = {
          account,
          key: `${account}-key-${(team * 2 + isProduction) % KEYS}`,
          model: `model-${name}`,
          line: `line-${(2 * name + line) % LINES}`,
          user: `user-${user}@example.com`,
          tags: tagsOf([
            ['team', `team-${team}`],
            ['env', isProduction ? 'production' : 'development'],
          ]),
          ...{ requests: 1, refused: 0, failed: 0, durationMs: null, images: 0, seconds: 0 },
          ...{ inputTokens: 1800, cachedInputTokens: 400, outputTokens: 350 },
          ...{ charged: 4_211_007n, cost: 2_105_503n },
        }
        mix.push({ share: often / (user + 10) / (model + 1), of })
      }
    }
  }
  const sum = mix.reduce((sum, { share }) => sum + share, 0)
  return mix.map(({ share, of }) => ({ share: share / sum, of }))
}

function times(
  { requests, inputTokens, cachedInputTokens, outputTokens, charged, cost, ...of }: Omit<UsageShare, 'at'>,
  n: number,
) {
  return {
    ...{ ...of, requests: n, inputTokens: inputTokens * n, cachedInputTokens: cachedInputTokens * n },
    ...{ outputTokens: outputTokens * n, charged: charged * BigInt(n), cost: cost * BigInt(n) },
  }
}

async function fill(url: string): Promise<void> {
  const db = await openDatabase(url)
  const accounts = [['acme', calls], ...Array.from({ length: 2 }, (_, i) => [`other-${i}`, calls / 10])] as [
    string,
    number,
  ][]
  for (const [account, all] of accounts) {
    const mix = mixOf(account)
    for (let day = 0; day < DAYS; day++) {
      const tally = new UsageTally()
      for (const [hour, busy] of BUSY.entries()) {
        const inHour = (all / DAYS / BUSY_SUM) * busy
        for (const { share, of } of mix) {
          const requests = countOf(share * inHour)
          const durationMs = DURATIONS[requests % DURATIONS.length] as number
          const at = START + (day * 24 + hour) * HOUR_MS
          if (requests > 0) tally.add({ ...times(of, requests), durationMs, at })
        }
      }
      const { statement, rows } = tally.write()
      await db.transaction().execute(async (trx) => {
        for (let i = 0; i < rows.length; i += 2000) await statement.run(trx, rows.slice(i, i + 2000))
      })
    }
  }
  await db.destroy()
}

const JANUARY = 'from=2026-01-01&to=2026-02-01'
const LAST_DAYS = 'from=2026-01-02T07:00:00Z&to=2026-02-01'
const QUERIES = [
  ...[
    'day',
    'model',
    'key',
    'line',
    'user',
    'tag:team',
    'month,user',
    'day,model',
    'model,line,key',
    'tag:team,tag:env,model',
    'day,user',
  ].map((group) => `/admin/usage?${JANUARY}&account=acme&group_by=${group}`),
  `/admin/usage?${JANUARY}&account=acme&user=user-3@example.com&group_by=day`,
  `/admin/usage?${JANUARY}&account=acme&tag:team=team-3&group_by=user`,
  `/admin/usage?${JANUARY}&account=acme&group_by=hour`,
  `/admin/usage?${JANUARY}&group_by=account`,
  `/admin/usage?${LAST_DAYS}&account=acme&group_by=user`,
  `/admin/usage?${JANUARY}&account=acme&group_by=user,model&format=csv`,
  ...['day', 'key,model', 'user', 'tag:team'].map((group) => `/v1/usage?${JANUARY}&group_by=${group}`),
]

async function measure(engine: string, url: string): Promise<void> {
  const started = performance.now()
  await fill(url)
  const filledIn = ((performance.now() - started) / 1000).toFixed(0)
  const db = await openDatabase(url, { readOnly: true, poolSize: 2 })
  const rows = await db
    .selectFrom('usage')
    .select(({ fn }) => ['grain', fn.countAll<bigint>().as('rows'), fn.sum<bigint>('requests').as('calls')])
    .where('account', '=', 'acme')
    .groupBy('grain')
    .orderBy('grain')
    .execute()
  console.log(
    `${engine}: filled in ${filledIn} s; rows of the account by grain: ${rows.map(({ grain, rows, calls }) => `${grain}: ${rows} (${calls} calls)`).join(', ')}`,
  )
  const app = express()
  const store = new SqlUsageStore(db)
  app.use('/admin', beginCall(), usageRoutes({ store, account: 'all' }))
  app.use('/v1', beginCall(), usageRoutes({ store, account: () => 'acme' }))
  const server = createServer(app)
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  for (const query of QUERIES) {
    const ms: number[] = []
    for (let round = 0; round <= rounds; round++) {
      const begun = performance.now()
      const response = await fetch(`http://127.0.0.1:${port}${query}`)
      const text = await response.text()
      if (response.status !== 200) throw new Error(text)
      // The first time is that of a cold cache.
      if (round > 0) ms.push(performance.now() - begun)
    }
    console.log(
      `${engine} ${median(ms).toFixed(0).padStart(5)} ms, at most ${Math.max(...ms)
        .toFixed(0)
        .padStart(5)}: ${query}`,
    )
  }
  server.close()
  server.closeAllConnections()
  await db.destroy()
}

if (flags.engines.includes('sqlite')) {
  const folder = await mkdtemp(join(tmpdir(), 'gateway-usage-'))
  try {
    await measure('SQLite', `sqlite:${join(folder, 'usage.db')}`)
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
}
if (flags.engines.includes('postgres')) {
  if (WITHOUT_POSTGRES) throw new Error(WITHOUT_POSTGRES)
  const postgres = await startPostgres()
  try {
    const url = await postgres.createDatabase()
    await measure('Postgres', url)
  } finally {
    await postgres.close()
  }
}
