import { setTimeout as sleep } from 'node:timers/promises'
import type { PostgresPair } from '../../support/postgres-pair.ts'
import type { RedisCluster } from '../../support/redis-cluster.ts'
import type { Load } from './callers.ts'
import { type Fleet, localSpans, type Member } from './fleet.ts'
import { SCHEDULE } from './setting.ts'

/** The counter of the first limit of a run: its slot moves, and its master is killed. */
const COUNTER = 'gateway:limits:rpm:key:limited-rpm-key-1'

/** The faults of a run, and their times; milliseconds since the epoch. */
export interface Provoked {
  readonly postgresAway: readonly [from: number, to: number]
  readonly redisKilledAt: number
  /** When all processes had noticed that it is back. */
  readonly redisBackAt: number
  readonly victims: readonly Member[]
  /** When the last of them was killed. */
  readonly killedAt: number
  /** Owners of leases that were alive behind their death. */
  readonly ownersAlive: ReadonlySet<string>
}

const POSTGRES_AWAY_MS = 3000
/** By then every process has asked the master that died. */
const NOTICED_MS = 1000
const RESTARTS = 3
const VICTIMS = 2
/** New callers come for so long after Redis is back: its empty counters fill. */
const CROWD_STAYS_MS = 4000
/** A lease is renewed every 7 s: whoever lives has renewed by then. */
const OWNERS_SEEN_AFTER_MS = 12_000

export interface Provocable {
  readonly load: Load
  readonly fleet: Fleet
  readonly redis: RedisCluster
  readonly postgres: PostgresPair
}

/** One after the other: a standby of Postgres takes over, processes restart, a slot moves, a replica of Redis takes over, two processes die. */
export async function provoke(seconds: number, parts: Provocable): Promise<Provoked> {
  const { load, fleet, redis, postgres } = parts
  const start = Date.now()
  const at = (share: number) => sleep(Math.max(0, start + share * seconds * 1000 - Date.now()))

  await at(SCHEDULE.postgres)
  const postgresGone = Date.now()
  await postgres.killPrimary()
  await sleep(POSTGRES_AWAY_MS)
  await postgres.promote()
  const postgresAway = [postgresGone, Date.now()] as const

  for (let i = 0; i < RESTARTS; i++) await fleet.replace(fleet.pick(0))
  await redis.moveSlot(COUNTER)

  await at(SCHEDULE.redis)
  load.crowd = true
  const redisKilledAt = Date.now()
  await redis.kill(await redis.masterOf(COUNTER))
  await sleep(NOTICED_MS)
  while (fleet.running.some(isCountingLocally)) await sleep(20)
  const redisBackAt = Date.now()
  await sleep(CROWD_STAYS_MS)
  load.crowd = false

  await at(SCHEDULE.gateway)
  const victims = fleet.running.slice(0, VICTIMS)
  await Promise.all(victims.map((victim) => fleet.kill(victim)))
  const killedAt = Date.now()
  await Promise.all(victims.map(() => fleet.start()))
  await sleep(Math.max(0, killedAt + OWNERS_SEEN_AFTER_MS - Date.now()))
  const alive = `select distinct owner from leases where ended_at is null and renewed_at > ${killedAt + 1000}`
  const owners = await postgres.query(alive)
  const ownersAlive = new Set(owners.map(({ owner }) => `${owner}`))
  return { postgresAway, redisKilledAt, redisBackAt, victims, killedAt, ownersAlive }
}

/** Replaces all processes, one after the other. */
export async function restartAll(fleet: Fleet): Promise<void> {
  for (const member of [...fleet.running]) await fleet.replace(member)
}

function isCountingLocally(member: Member): boolean {
  return localSpans(member).at(-1)?.to === Number.POSITIVE_INFINITY
}
