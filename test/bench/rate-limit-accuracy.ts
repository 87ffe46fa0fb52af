// How much of a limit two processes on one Redis admit under load, and what callers see while Redis is away:
// node test/bench/rate-limit-accuracy.ts
import { setTimeout as sleep } from 'node:timers/promises'
import { type LimitSettings, load, type Reply, shareOf, startLimited } from '../rate-limit/load.ts'
import { startRedis } from '../support/redis-server.ts'

const WINDOWS_MS = 8000
const HOLD_MS = 1000
const SLOTS = 20

const server = await startRedis()

async function withTwo(settings: LimitSettings, run: (urls: string[]) => Promise<void>): Promise<void> {
  await server.client().flushall()
  const two = await Promise.all([startLimited(server.port, settings), startLimited(server.port, settings)])
  await run(two.map(({ url }) => url))
  await Promise.all(two.map((each) => each.kill()))
}

/** Callers that honour Retry-After and want more than they may have; ends when its last window is full. */
function demandOver(ms: number, urls: string[], headers: Record<string, string>): Promise<Reply[]> {
  const end = performance.now() + ms
  return load({ urls, callers: 60, headers, done: ({ status }) => status === 429 && performance.now() > end })
}

const admittedOf = (replies: readonly Reply[]) => replies.filter(({ status }) => status === 200)

await withTwo({ rpm: 200, windowMs: 2000 }, async (urls) => {
  const admitted = admittedOf(await demandOver(WINDOWS_MS, urls, {}))
  const share = shareOf(
    admitted.map(({ remainingRequests }) => remainingRequests),
    200,
    1,
  )
  console.log('requests     admitted ÷ configured', share)
})

await withTwo({ tpm: 2100, windowMs: 2000 }, async (urls) => {
  const admitted = admittedOf(await demandOver(WINDOWS_MS, urls, { 'x-tokens': '7' }))
  const share = shareOf(
    admitted.map(({ remainingTokens }) => remainingTokens),
    2100,
    7,
  )
  console.log('tokens       admitted ÷ configured', share)
})

await withTwo({ concurrency: SLOTS }, async (urls) => {
  const start = performance.now()
  const replies = await load({
    urls,
    callers: 120,
    spreadMs: HOLD_MS,
    headers: { 'x-hold': `${HOLD_MS}` },
    done: () => performance.now() > start + WINDOWS_MS,
  })
  const running = replies.flatMap((reply) => reply.running ?? [])
  // From when the slots are full for the first time to when nobody asks for one any more.
  const [from, to] = [start + 2 * HOLD_MS, start + WINDOWS_MS]
  const inUse = replies
    .filter((reply) => reply.running !== undefined)
    .map(({ at }) => Math.max(0, Math.min(at, to) - Math.max(at - HOLD_MS, from)))
    .reduce((sum, ms) => sum + ms, 0)
  console.log('concurrency  in use ÷ configured', {
    average: inUse / (SLOTS * (to - from)),
    most: Math.max(...running) / SLOTS,
  })
})

await withTwo({ rpm: 1e6, tpm: 1e9, concurrency: 1000 }, async (urls) => {
  const start = performance.now()
  const loading = load({ urls, callers: 40, pauseMs: 5, done: () => performance.now() - start > 9000 })
  await sleep(2000)
  await server.kill()
  await sleep(5000)
  await server.restart()
  const replies = await loading
  const statuses = Object.groupBy(replies, ({ status }) => `${status}`)
  console.log('Redis killed for 5 s', {
    statuses: Object.fromEntries(Object.entries(statuses).map(([status, all]) => [status, all?.length])),
    slowestMs: Math.round(Math.max(...replies.map(({ took }) => took))),
  })
})

await server.close()
process.exit()
