import { setTimeout as sleep } from 'node:timers/promises'
import { recordId } from '../../../lib/middleware/idempotency/idempotency-key.ts'
import type { PostgresPair } from '../../support/postgres-pair.ts'
import type { RedisCluster } from '../../support/redis-cluster.ts'
import type { Books } from './books.ts'
import type { Wanted } from './exchange.ts'
import type { Provoked } from './provocations.ts'
import { accountOfPaid } from './setting.ts'

const LIMITS = 'gateway:limits:*'
const SLOTS = 'gateway:limits:concurrency:*'
/** A killed process's slots end by themselves within 30 s; its leases are returned within 45 s. */
const SLOTS_END_WITHIN_MS = 30_000
const LEASES_END_WITHIN_MS = 45_000
/** Slots are renewed every 25/3 s: one that a process still holds is in Redis again by then. */
const RENEWED_WITHIN_MS = 9000

/** Returns the work of each master for the limits: its keys, and the scripts that it ran. A replica that took over has only its own. */
export async function limitsByMaster(redis: RedisCluster): Promise<{ keys: number; scripts: number }[]> {
  return Promise.all(
    (await redis.masters()).map(async (master) => {
      const calls = [...(await master.info('commandstats')).matchAll(/^cmdstat_eval(?:sha)?:calls=(\d+)/gm)]
      return {
        keys: (await master.keys(LIMITS)).length,
        scripts: calls.reduce((sum, [, count]) => sum + Number(count), 0),
      }
    }),
  )
}

/** Returns a number that grows with each replica that takes over, be it only because its master had no core for a while. */
export async function clusterEpoch(redis: RedisCluster): Promise<number> {
  const [master] = await redis.masters()
  return Number(/cluster_current_epoch:(\d+)/.exec(`${await master?.call('CLUSTER', 'INFO')}`)?.[1])
}

/** Slots that Redis knows of and that have not run out. */
export async function openSlots(redis: RedisCluster): Promise<number> {
  let open = 0
  for (const master of await redis.masters())
    for (const key of await master.keys(SLOTS)) open += await master.zcount(key, Date.now(), '+inf')
  return open
}

/** Slots that are held when nobody calls any more, and when all that hold one have renewed it. */
export async function leakedSlots(redis: RedisCluster, provoked: Provoked | undefined): Promise<number> {
  const deadline = Math.max(Date.now() + 1000, (provoked?.killedAt ?? 0) + SLOTS_END_WITHIN_MS)
  while ((await openSlots(redis)) > 0 && Date.now() < deadline) await sleep(100)
  const left = await openSlots(redis)
  await sleep(RENEWED_WITHIN_MS)
  return Math.max(left, await openSlots(redis))
}

/** Waits until the leases of a killed process are returned, for as long as that may take. */
export async function sweepOfTheDead(
  postgres: PostgresPair,
  { killedAt, ownersAlive }: Provoked,
): Promise<void> {
  const deadline = killedAt + LEASES_END_WITHIN_MS
  while (Date.now() < deadline) {
    const open = await postgres.query('select distinct owner from leases where ended_at is null')
    if (open.every(({ owner }) => ownersAlive.has(`${owner}`))) return
    await sleep(500)
  }
}

/** Returns the leases that are left when all processes have ended, and those that a live process lost. */
export function leasesOf({ leases }: Books, provoked: Provoked | undefined) {
  const dead = (owner: string) => provoked !== undefined && !provoked.ownersAlive.has(owner)
  return {
    left: leases.filter(({ ended, held }) => ended === null || held !== 0n).length,
    lost: leases.filter(({ ended, owner }) => ended === 'swept' && !dead(owner)).length,
    swept: leases.filter(({ ended }) => ended === 'swept').length,
  }
}

/** Claims that still run when no process does: those of the dead, which expire, and others, which nobody gives back. */
export function claimsOf({ openClaims }: Books, wanted: readonly Wanted[], provoked: Provoked | undefined) {
  let ofTheDead = 0
  const leaked: string[] = []
  for (const { name, path, secret, sends, idempotencyKey } of wanted) {
    if (idempotencyKey === undefined) continue
    if (!openClaims.has(recordId(accountOfPaid(secret), 'POST', path, idempotencyKey))) continue
    const cut = sends.some(({ member, endedAt }) => {
      return provoked?.victims.includes(member) && endedAt >= (member.killedAt as number)
    })
    if (cut) ofTheDead++
    else leaked.push(name)
  }
  const unknown = openClaims.size - ofTheDead - leaked.length
  return { ofTheDead, leaked: leaked.length + unknown }
}
