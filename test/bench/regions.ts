/**
 * What three regions add to calls, what a region serves while the home of an account is away, and how exact money is:
 * `node test/bench/regions.ts`. See README.md.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { formatAmount, parseAmount } from '../../lib/core/catalog/index.ts'
import { shutDown } from '../system/chaos/paid-gateways.ts'
import {
  COST,
  REGIONS,
  type RegionalAccount,
  type RegionalCall,
  type RegionName,
  ROUND_TRIPS,
  regionWorld,
  startTraffic,
  UPSTREAM_MS,
} from '../system/chaos/region-world.ts'
import { percentile } from './statistics.ts'

const [GROWN_MS, STEADY_MS, AWAY_MS, BACK_MS] = [10_000, 12_000, 10_000, 5000]
/** After a minute or so, a share is used up. */
const MOST_AWAY_MS = 75_000
/** The home that is cut off. */
const AWAY: RegionName = 'eu'
const ACCOUNTS: readonly RegionalAccount[] = REGIONS.flatMap((home) => [
  { id: `rich-${home}`, home, balance: '20' },
  { id: `poor-${home}`, home, balance: '0.3' },
])
const homes = new Map(ACCOUNTS.map(({ id, home }) => [id, home]))

const ends: (() => unknown)[] = []
const world = await regionWorld({ after: (end) => void ends.push(end) }, { accounts: ACCOUNTS })
const gateways = await Promise.all(
  REGIONS.map(async (region) => ({ region, gateway: await world.start(region) })),
)
const traffic = startTraffic(
  gateways,
  ACCOUNTS.map(({ id }) => ({ account: id })),
)
const { seen } = traffic

const isServed = ({ status }: RegionalCall): boolean => status === 200
const distance = ({ account, region }: RegionalCall): number => {
  const home = homes.get(account) ?? region
  return home === region ? 0 : (ROUND_TRIPS[[home, region].sort().join(' ')] ?? 0)
}
const isRich = ({ account }: RegionalCall): boolean => account.startsWith('rich')
const isOfAway = ({ account, region }: RegionalCall): boolean =>
  homes.get(account) === AWAY && region !== AWAY
const between = (from: number, to: number) =>
  seen.filter(({ sentAt, ms }) => sentAt >= from && sentAt + ms < to)

function added(calls: readonly RegionalCall[]): string {
  const own = calls.filter(isServed).map(({ ms }) => ms - UPSTREAM_MS)
  if (own.length === 0) return '– | –'
  return [50, 99].map((share) => `${Math.round(percentile(own, share))} ms`).join(' | ')
}

function codes(calls: readonly RegionalCall[]): string {
  const counts = Map.groupBy(
    calls.filter((call) => !isServed(call)),
    ({ code }) => code ?? 'no answer',
  )
  return Array.from(counts, ([code, each]) => `${each.length} \`${code}\``).join(', ') || 'none'
}

function row(name: string, calls: readonly RegionalCall[]): void {
  console.log(`| ${name} | ${calls.filter(isServed).length} | ${codes(calls)} | ${added(calls)} |`)
}

async function until(isTrue: () => boolean, withinMs: number): Promise<number> {
  const from = performance.now()
  while (!isTrue() && performance.now() - from < withinMs) await sleep(50)
  return performance.now() - from
}

const isServedEverywhere = (): boolean => {
  const served = new Set(seen.filter(isServed).map(({ region, account }) => `${region} ${account}`))
  return served.size === REGIONS.length * ACCOUNTS.length
}
await until(isServedEverywhere, 60_000)
await sleep(GROWN_MS)
const steadyAt = performance.now()
await sleep(STEADY_MS)
const cutAt = performance.now()
world.others(AWAY, 'cut')
/** The time of the last served call of the rich account in a region, if it has been refused since. */
const lastServed = (region: RegionName): number | undefined => {
  const own = seen.filter((call) => call.region === region && isRich(call) && isOfAway(call))
  const last = own.findLast(isServed)?.sentAt ?? cutAt
  return own.filter((call) => !isServed(call) && call.sentAt > Math.max(last, cutAt)).length > 5
    ? last
    : undefined
}
const others = REGIONS.filter((region) => region !== AWAY)
await until(() => others.every((region) => lastServed(region) !== undefined), MOST_AWAY_MS)
const wentOn = others.map((region) => {
  const last = lastServed(region)
  return `${region} ${last === undefined ? 'over ' : ''}${Math.round(((last ?? performance.now()) - cutAt) / 1000)} s`
})
const mendedAt = performance.now()
world.others(AWAY, 'mend')
const isBack = (region: RegionName): boolean =>
  seen.some(
    (call) =>
      call.sentAt > mendedAt && call.region === region && isRich(call) && isOfAway(call) && isServed(call),
  )
const backAfter = await until(() => others.every(isBack), 20_000)
await sleep(BACK_MS)
await traffic.stop()
await shutDown(gateways.map(({ gateway }) => gateway))

const steady = between(steadyAt, cutAt).filter(isRich)
const away = between(cutAt, cutAt + AWAY_MS).filter(isRich)
console.log('| | served | refused | added p50 | p99 |\n| --- | --- | --- | --- | --- |')
for (const ms of [...new Set(seen.map(distance))].sort((a, b) => a - b))
  row(
    ms === 0 ? 'accounts of the region' : `accounts whose home is ${ms} ms away`,
    steady.filter((call) => distance(call) === ms),
  )
row('home cut off, its accounts in other regions', away.filter(isOfAway))
row(
  'meanwhile, all other accounts',
  away.filter((call) => !isOfAway(call)),
)
const firsts = REGIONS.flatMap((region) =>
  ACCOUNTS.flatMap(({ id }) => seen.find((call) => call.region === region && call.account === id) ?? []),
)
row(
  'the first call of an account in another region',
  firsts.filter((call) => distance(call) > 0),
)
row(
  'an account that is used up',
  seen.filter((call) => !isRich(call)),
)
console.log(
  `\nserved on with the home away: ${wentOn.join(', ')}; again ${Math.round(backAfter)} ms after it was back`,
)

const books = new Map(
  await Promise.all(REGIONS.map(async (region) => [region, await world.books(region)] as const)),
)
const violations = [...books.values()].flatMap((each) => each.violations)
const charges = [...books.values()].flatMap(({ charged }) => [...charged.values()])
const charged = Number(charges.reduce((sum, amount) => sum + amount, 0n) / COST)
const bill = world.served()
const billed = seen.filter((call) => isServed(call) && bill.get(call.text)?.length === 1).length
console.log(
  `${charged} calls charged, ${seen.filter(isServed).length} served, ${billed} of them billed once by the upstream, ${bill.size} billed in all; violations: ${violations.length}`,
)
for (const { id, home, balance } of ACCOUNTS) {
  const inAll = REGIONS.reduce((sum, region) => sum + (books.get(region)?.charged.get(id) ?? 0n), 0n)
  const left = parseAmount(balance) - inAll
  const known = books.get(home)?.spent.get(id) === inAll ? 'as home knows' : 'WRONG at home'
  console.log(
    `${id}: ${formatAmount(inAll)} of ${balance} spent, ${known}; overspent ${left < 0n ? formatAmount(-left) : 0}`,
  )
}
for (const end of ends.reverse()) await end()
