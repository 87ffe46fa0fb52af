// How much of a limit two processes on one Redis admit under load, and what callers see while Redis is away:
// node test/bench/rate-limit-accuracy.ts --help
import { setTimeout as sleep } from 'node:timers/promises'
import { parseArgs } from 'node:util'
import { type LimitSettings, load, type Reply, shareOf, startLimited } from '../middleware/rate-limit/load.ts'
import { startRedis } from '../support/redis-server.ts'
import { type OutOfStep, outOfStep } from './out-of-step.ts'

const WINDOWS_MS = 8000
const HOLD_MS = 1000
const SLOTS = 20

const CASES = ['requests', 'tokens', 'concurrency', 'out-of-step', 'outage']

const { values: flags } = parseArgs({
  options: {
    cases: { type: 'string', default: CASES.join() },
    callers: { type: 'string', default: '30' },
    shortest: { type: 'string', default: '200' },
    longest: { type: 'string', default: '3000' },
    window: { type: 'string', default: '20000' },
    windows: { type: 'string', default: '3' },
    most: { type: 'string', default: '150' },
    help: { type: 'boolean', default: false },
  },
})
if (flags.help) {
  console.log(`--cases ${CASES.join()}
and for out-of-step: --callers, the --shortest and --longest that calls run, the --window (all ms), how many --windows,
the --most requests of a window`)
  process.exit()
}

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

/** Six times as many callers as there are slots; each that is refused one asks again when its answer says. */
function slotsInUse(name: string, spreadMs: number, runsMs: () => number): Promise<void> {
  return withTwo({ concurrency: SLOTS }, async (urls) => {
    const start = performance.now()
    // From when the slots are full for the first time to when nobody asks for one any more.
    const [from, to] = [Date.now() + 2 * HOLD_MS, Date.now() + WINDOWS_MS]
    const replies = await load({
      urls,
      callers: 6 * SLOTS,
      spreadMs,
      headers: () => ({ 'x-hold': `${runsMs()}` }),
      done: () => performance.now() > start + WINDOWS_MS,
    })
    const inUse = replies
      .filter(({ admittedAt }) => admittedAt !== undefined)
      .map(({ admittedAt, at }) => [admittedAt as number, performance.timeOrigin + at] as const)
      .map(([begin, end]) => Math.max(0, Math.min(end, to) - Math.max(begin, from)))
      .reduce((sum, ms) => sum + ms, 0)
    console.log(`concurrency  ${name}: in use ÷ configured`, {
      average: inUse / (SLOTS * (to - from)),
      most: Math.max(...replies.flatMap(({ running }) => running ?? [])) / SLOTS,
    })
  })
}

const admittedOf = (replies: readonly Reply[]) => replies.filter(({ status }) => status === 200)

const run: Record<string, () => Promise<void>> = {
  requests: () =>
    withTwo({ rpm: 200, windowMs: 2000 }, async (urls) => {
      const admitted = admittedOf(await demandOver(WINDOWS_MS, urls, {}))
      const remainders = admitted.map(({ remainingRequests }) => remainingRequests)
      console.log('requests     admitted ÷ configured', shareOf(remainders, 200, 1))
    }),

  tokens: () =>
    withTwo({ tpm: 2100, windowMs: 2000 }, async (urls) => {
      const admitted = admittedOf(await demandOver(WINDOWS_MS, urls, { 'x-tokens': '7' }))
      const remainders = admitted.map(({ remainingTokens }) => remainingTokens)
      console.log('tokens       admitted ÷ configured', shareOf(remainders, 2100, 7))
    }),

  concurrency: async () => {
    const like = `calls of ${HOLD_MS} ms`
    await slotsInUse(`${like}, begun apart`, HOLD_MS, () => HOLD_MS)
    await slotsInUse(`${like}, begun at once`, 0, () => HOLD_MS)
    await slotsInUse(
      'calls of 200 to 2200 ms, begun at once',
      0,
      () => 200 + Math.floor(Math.random() * 2000),
    )
  },

  'out-of-step': async () => {
    await server.client().flushall()
    const most = Number(flags.most)
    const common = {
      windowMs: Number(flags.window),
      windows: Number(flags.windows),
      callers: Number(flags.callers),
      runsMs: [Number(flags.shortest), Number(flags.longest)],
      tokens: [10, 30],
    } as const
    const settings: OutOfStep[] = ([server.port, 'memory'] as const).flatMap((store) => [
      { ...common, store, kind: 'rpm', most },
      { ...common, store, kind: 'tpm', most: most * 20 },
    ])
    await Promise.all(
      settings.map(async (setting) => {
        const share = await outOfStep(setting)
        const where = setting.store === 'memory' ? 'memory' : 'Redis, two processes'
        console.log(`out of step  ${setting.kind}, ${where}: admitted ÷ configured`, share)
      }),
    )
  },

  outage: () =>
    withTwo({ rpm: 1e6, tpm: 1e9, concurrency: 1000 }, async (urls) => {
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
    }),
}

for (const name of flags.cases.split(',')) {
  const measure = run[name]
  if (!measure) throw new Error(`there is no case "${name}"; there are ${CASES.join()}`)
  await measure()
}

await server.close()
process.exit()
