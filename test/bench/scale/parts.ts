import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import type { StrategyName } from '../../../lib/middleware/route/index.ts'
import { turns } from '../../ledger/support/virtual-clock.ts'
import { WITHOUT_POSTGRES } from '../../support/postgres-server.ts'
import { DATABASE_CASES, openSide } from './database-cases.ts'
import { type FilledDatabases, postgresDatabases, sqliteDatabases } from './filled-databases.ts'
import { KEY_CASES, type SeenSide, seeKeys } from './key-cases.ts'
import { LINE_CASES, withLines } from './line-cases.ts'
import { REQUEST_CASE, serveGateway, serveUpstream } from './request-cases.ts'
import { compareSides, type ScaleRow } from './rounds.ts'
import { contentsOf, type Filling } from './rows.ts'

/** The parameters of a comparison. */
export interface Scale {
  readonly small: Filling
  readonly large: Filling
  readonly lines: number
  readonly rounds: number
  readonly tell: (text: string) => void
}

/** Each part of the comparison, by its name. */
export const PARTS: Readonly<Record<string, (scale: Scale) => Promise<ScaleRow[]>>> = {
  sqlite: async (scale) => compareDatabases(await sqliteDatabases(scale.tell), scale),
  async postgres(scale) {
    if (!WITHOUT_POSTGRES) return compareDatabases(await postgresDatabases(scale.tell), scale)
    scale.tell(WITHOUT_POSTGRES)
    return []
  },
  keys: compareKeys,
  lines: compareLines,
}

async function compareDatabases(databases: FilledDatabases, scale: Scale): Promise<ScaleRow[]> {
  const { small, large, rounds, tell } = scale
  const { engine } = databases
  try {
    tell(`${engine}: filling`)
    const start = performance.now()
    const urls = {
      small: await databases.create(contentsOf(small)),
      large: await databases.create(contentsOf(large)),
    }
    const gigabytes = (await databases.size(urls.large)) / 1e9
    tell(`${engine}: ${gigabytes.toFixed(1)} GB in ${((performance.now() - start) / 1000).toFixed(0)} s`)
    const sides = { small: await openSide(urls.small, small), large: await openSide(urls.large, large) }
    try {
      return await compareSides(engine, DATABASE_CASES, sides, rounds)
    } finally {
      await sides.small.close()
      await sides.large.close()
    }
  } finally {
    await databases.close()
  }
}

async function compareKeys({ small, large, rounds, tell }: Scale): Promise<ScaleRow[]> {
  const upstream = await serveUpstream()
  const served = (keys: number) => serveGateway({ upstream, keys, lines: 1, strategy: 'priority' })
  const gateways = { small: await served(small.keys), large: await served(large.keys) }
  const requests = await compareSides('keys', [REQUEST_CASE], gateways, rounds)
  const sides = { small: await seeKeys(small.keys), large: await seeKeys(large.keys) }
  const rows = await compareSides('keys', KEY_CASES, sides, rounds)
  await tellOfMemory(sides.large, tell)
  return [...rows, ...requests]
}

/** Reports the cost of remembering wallets: memory, and the look at each of them once a second. */
async function tellOfMemory(side: SeenSide, tell: Scale['tell']): Promise<void> {
  const heap = collectedHeap()
  const { wallets } = side.pool.stats
  const start = performance.now()
  await passSecond(side)
  const tickMs = performance.now() - start
  for (let second = 0; second < 20 && side.pool.stats.wallets > 0; second++) await passSecond(side)
  const bytes = (heap - collectedHeap()) / wallets
  tell(`lease pool: ${wallets} wallets remembered, ${bytes.toFixed(0)} B each; ${tickMs.toFixed(0)} ms a second
  to look at them all; ${side.pool.stats.wallets} left when none was used for ten seconds`)
}

/** All that is done once a second is done: it takes a turn of the event loop for each 500 accounts. */
async function passSecond({ clock, keys }: SeenSide): Promise<void> {
  await clock.advance(1000)
  await turns(Math.ceil(keys / 100))
}

function collectedHeap(): number {
  setFlagsFromString('--expose-gc')
  const collect = runInNewContext('gc') as () => void
  collect()
  return process.memoryUsage().heapUsed
}

async function compareLines({ lines, rounds }: Scale): Promise<ScaleRow[]> {
  const rows = await compareSides(
    'lines',
    LINE_CASES,
    { small: withLines(1), large: withLines(lines) },
    rounds,
  )
  const upstream = await serveUpstream()
  for (const strategy of ['priority', 'affinity'] satisfies StrategyName[]) {
    const served = (count: number) => serveGateway({ upstream, keys: 1, lines: count, strategy })
    const sides = { small: await served(1), large: await served(lines) }
    const named = { ...REQUEST_CASE, name: `a request by ${strategy}, all lines have the model` }
    rows.push(...(await compareSides('lines', [named], sides, rounds)))
  }
  return rows
}
