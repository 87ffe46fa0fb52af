import { setTimeout as sleep } from 'node:timers/promises'
import type { PostgresServer } from '../../support/postgres-server.ts'
import type { RedisServer } from '../../support/redis-server.ts'
import type { Load } from './callers.ts'
import { type Fleet, localSpans, type Member } from './fleet.ts'
import { SCHEDULE } from './setting.ts'

/** What was done to a run, and when; milliseconds since the epoch. */
export interface Provoked {
  readonly postgresAway: readonly [from: number, to: number]
  readonly redisKilledAt: number
  /** When all processes had noticed that it is back. */
  readonly redisBackAt: number
  readonly victim: Member
  /** Owners of leases that were alive behind the death of the victim. */
  readonly ownersAlive: ReadonlySet<string>
}

const POSTGRES_AWAY_MS = 3000
const REDIS_AWAY_MS = 5000
/** New callers come for so long after Redis is back: its empty counters fill. */
const CROWD_STAYS_MS = 4000
/** A lease is renewed every 7 s: whoever lives has renewed by then. */
const OWNERS_SEEN_AFTER_MS = 12_000

export interface Provocable {
  readonly load: Load
  readonly fleet: Fleet
  readonly redis: RedisServer
  readonly postgres: PostgresServer
  readonly database: string
}

/** Restarts Postgres, kills Redis for a while, and kills and replaces a gateway process, one after the other. */
export async function provoke(seconds: number, parts: Provocable): Promise<Provoked> {
  const { load, fleet, redis, postgres, database } = parts
  const start = Date.now()
  const at = (share: number) => sleep(Math.max(0, start + share * seconds * 1000 - Date.now()))

  await at(SCHEDULE.postgres)
  const postgresGone = Date.now()
  await postgres.stop()
  await sleep(POSTGRES_AWAY_MS)
  await postgres.start()
  const postgresAway = [postgresGone, Date.now()] as const

  await at(SCHEDULE.redis)
  load.crowd = true
  const redisKilledAt = Date.now()
  await redis.kill()
  await sleep(REDIS_AWAY_MS)
  await redis.restart()
  while (fleet.running.some(isCountingLocally)) await sleep(20)
  const redisBackAt = Date.now()
  await sleep(CROWD_STAYS_MS)
  load.crowd = false

  await at(SCHEDULE.gateway)
  const victim = fleet.pick(0)
  await fleet.kill(victim)
  await fleet.start()
  const killedAt = victim.killedAt as number
  await sleep(killedAt + OWNERS_SEEN_AFTER_MS - Date.now())
  const alive = `select distinct owner from leases where ended_at is null and renewed_at > ${killedAt + 1000}`
  const owners = await postgres.query(alive, database)
  const ownersAlive = new Set(owners.map(({ owner }) => `${owner}`))
  return { postgresAway, redisKilledAt, redisBackAt, victim, ownersAlive }
}

function isCountingLocally(member: Member): boolean {
  return localSpans(member).at(-1)?.to === Number.POSITIVE_INFINITY
}
