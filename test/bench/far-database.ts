/**
 * The waits and refusals of calls while Postgres is a round trip away: `node test/bench/far-database.ts [ms …]
 * [keyed]`. `keyed`: each has an Idempotency-Key. See README.md.
 */
import { randomUUID } from 'node:crypto'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { openDatabase, SqlLedger } from '../../lib/stores/sql/index.ts'
import { farServer } from '../support/far-server.ts'
import { type GatewayProcess, startGatewayProcess, temporaryFolder } from '../support/gateway-process.ts'
import { startPostgres } from '../support/postgres-server.ts'
import {
  type AskOptions,
  ask,
  type Seen,
  startUnhurriedUpstream,
  tally,
  UNHURRIED_MS,
} from '../system/chaos/ledger-load.ts'
import { percentile } from './statistics.ts'

const CALLS_A_SECOND = 200
const SECONDS = 15
/** A new process compiles, connects and leases meanwhile. */
const START_SECONDS = 3
const ACCOUNTS = Array.from({ length: 20 }, (_, i) => `account-${i}`)
const keyed = process.argv.includes('keyed')
const given = process.argv
  .slice(2)
  .filter((each) => each !== 'keyed')
  .map(Number)
const roundTrips = given.length > 0 ? given : [1, 100]

const postgres = await startPostgres()
const upstream = await startUnhurriedUpstream()
const folder = await temporaryFolder()
const GATEWAY_CONFIG = join(folder.path, 'config.json')
const price = { perRequest: '0.001', inputPerMillion: '1', outputPerMillion: '2' }
const line = { id: 'l', provider: 'p', protocol: 'openai', baseUrl: `${upstream.url}/v1`, models: { m: 'u' } }
await writeFile(
  GATEWAY_CONFIG,
  JSON.stringify({
    accounts: ACCOUNTS.map((id) => ({ id, balance: '1000' })),
    keys: ACCOUNTS.map((id) => ({ id: `key-${id}`, account: id, secret: `sk-${id}`, quota: '500' })),
    models: [{ id: 'm', kind: 'chat', maxOutputTokens: 100, price }],
    lines: [line],
  }),
)

function callOf(index: number): AskOptions {
  return { secret: `sk-${ACCOUNTS[index % ACCOUNTS.length]}`, key: keyed ? randomUUID() : null }
}

/** Calls at a steady rate, whatever becomes of them. */
async function steadyCalls(gateway: GatewayProcess): Promise<Seen[]> {
  const calls: Promise<Seen>[] = []
  const began = performance.now()
  for (let passed = 0; passed < SECONDS; passed = (performance.now() - began) / 1000) {
    while (calls.length < passed * CALLS_A_SECOND) calls.push(ask(gateway, callOf(calls.length)))
    await sleep(2)
  }
  return Promise.all(calls)
}

async function measure(roundTripMs: number): Promise<string> {
  const near = await postgres.createDatabase()
  // Its tables are made from near by: that is not what is measured.
  await (await openDatabase(near)).destroy()
  const far = await farServer(postgres.port, roundTripMs)
  const url = new URL(near)
  url.port = `${far.port}`
  const gateway = await startGatewayProcess({ GATEWAY_CONFIG, DATABASE_URL: url.href, LOG_LEVEL: 'warn' })
  const seen = await steadyCalls(gateway)
  gateway.kill('SIGTERM')
  await gateway.exited
  await far.close()
  const db = await openDatabase(near, { readOnly: true })
  const { violations, leased } = await new SqlLedger(db).check()
  await db.destroy()
  const addedOf = (calls: readonly Seen[]) =>
    calls.filter(({ status }) => status === 200).map(({ ms }) => ms - UNHURRIED_MS)
  const [all, started] = [seen, seen.slice(START_SECONDS * CALLS_A_SECOND)].map(addedOf)
  const msOf = (added: readonly number[] = [], share: number) => `${Math.round(percentile(added, share))} ms`
  const books = violations.length === 0 && leased === 0n ? 'exact' : 'WRONG'
  const cells = [msOf(all, 50), msOf(all, 99), msOf(started, 99), books]
  return `| ${roundTripMs} ms | ${JSON.stringify(tally(seen))} | ${cells.join(' | ')} |`
}

console.log(`| round trip | answers | added p50 | p99 | p99 after ${START_SECONDS} s | ledger |
| --- | --- | --- | --- | --- | --- |`)
for (const roundTripMs of roundTrips) console.log(await measure(roundTripMs))
await upstream.close()
await postgres.close()
await folder.remove()
