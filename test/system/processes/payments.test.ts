import assert from 'node:assert/strict'
import { type ChildProcess, spawn } from 'node:child_process'
import { createInterface } from 'node:readline'
import { describe, it, type TestContext } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { databaseUrl } from '../../stores/sql/support/temporary-database.ts'
import { OWN_PROGRAM_FLAGS } from '../../support/own-program.ts'
import { startRedis, WITHOUT_REDIS } from '../../support/redis-server.ts'

const PROGRAM = fileURLToPath(new URL('./payments-process.ts', import.meta.url))
const HOW = ['at once', 'slowly', 'stream', 'throws', 'declined']
const STATUS: Record<string, number> = { throws: 500, declined: 402 }
const ATTEMPTS = 1000
const KEYS = 50
const CALLERS = 12

interface Bank {
  readonly child: ChildProcess
  readonly url: string
}

/** Starts a process, and notes each payment that it makes. */
async function startBank(t: TestContext, store: string, paid: Map<string, string[]>): Promise<Bank> {
  const child = spawn(process.execPath, [...OWN_PROGRAM_FLAGS, PROGRAM, store], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  t.after(() => child.kill('SIGKILL'))
  const url = await new Promise<string>((resolve) => {
    createInterface({ input: child.stdout }).on('line', (line) => {
      const [key = '', receipt] = line.split(' ')
      if (receipt === undefined) resolve(line)
      else paid.set(key, [...(paid.get(key) ?? []), receipt])
    })
  })
  return { child, url }
}

interface Answer {
  readonly status: number
  readonly receipt: string | undefined
  readonly replayed: boolean
}

/** Pays once; undefined if the caller left, or the answer broke off. */
async function pay(url: string, key: string, leavesAfterMs?: number): Promise<Answer | undefined> {
  try {
    const res = await fetch(url, {
      method: 'POST',
      headers: { 'content-type': 'application/json', 'idempotency-key': key },
      body: JSON.stringify({ how: howOf(key) }),
      signal: leavesAfterMs === undefined ? AbortSignal.timeout(60_000) : AbortSignal.timeout(leavesAfterMs),
    })
    const { receipt } = (await res.json()) as { receipt?: string }
    return { status: res.status, receipt, replayed: res.headers.get('idempotent-replayed') === 'true' }
  } catch {
    return undefined
  }
}

function howOf(key: string): string {
  return HOW[Number(key.slice(4)) % HOW.length] as string
}

/** Stops a process again and again, each time for less than its leases last. */
async function pausing(pause: () => void, resume: () => void, isOver: () => boolean): Promise<void> {
  while (!isOver()) {
    await sleep(300 + Math.random() * 500)
    pause()
    await sleep(50 + Math.random() * 300)
    resume()
  }
}

const BACKENDS = [
  {
    name: 'memory, one process',
    processes: 1,
    open: async () => ({ store: 'memory' }),
    skip: false as const,
  },
  {
    name: 'one SQLite file, two processes',
    processes: 2,
    open: async (t: TestContext) => ({ store: await databaseUrl(t) }),
    skip: false as const,
  },
  {
    name: 'Redis, two processes, and Redis stands still now and then',
    processes: 2,
    open: async (t: TestContext) => {
      const redis = await startRedis()
      t.after(() => redis.close())
      return { store: `redis://127.0.0.1:${redis.port}`, redis }
    },
    skip: WITHOUT_REDIS,
  },
]

describe('a payments API that is retried a thousand times: callers leave, handlers throw, processes and stores stand still or fail', () => {
  for (const { name, processes, open, skip } of BACKENDS) {
    it(`pays once for each key, and every repetition gets the first answer: ${name}`, { skip }, async (t) => {
      const paid = new Map<string, string[]>()
      const opened: { store: string; redis?: { pause(): void; resume(): void } } = await open(t)
      const banks: Bank[] = []
      for (let i = 0; i < processes; i++) banks.push(await startBank(t, opened.store, paid))
      const urlOf = (attempt: number) => banks[attempt % processes]?.url ?? ''
      const seen = new Map<string, Answer[]>()
      const note = (key: string, answer: Answer | undefined): boolean => {
        if (answer?.receipt === undefined) return false
        seen.set(key, [...(seen.get(key) ?? []), answer])
        return true
      }

      let attempts = 0
      let isOver = false
      const standingStill = banks.map(({ child }) =>
        pausing(
          () => child.kill('SIGSTOP'),
          () => child.kill('SIGCONT'),
          () => isOver,
        ),
      )
      const { redis } = opened
      if (redis)
        standingStill.push(
          pausing(
            () => redis.pause(),
            () => redis.resume(),
            () => isOver,
          ),
        )
      const caller = async (): Promise<void> => {
        for (let attempt = attempts++; attempt < ATTEMPTS; attempt = attempts++) {
          const key = `pay-${Math.floor(Math.random() * KEYS)}`
          note(
            key,
            await pay(urlOf(attempt), key, attempt % 4 === 0 ? Math.ceil(Math.random() * 40) : undefined),
          )
        }
      }
      await Promise.all(Array.from({ length: CALLERS }, caller))
      isOver = true
      await Promise.all(standingStill)

      for (let i = 0; i < KEYS; i++) {
        const key = `pay-${i}`
        // The store still fails now and then, which is reported as an error that is worth another try.
        for (const { url } of [...banks, ...banks]) {
          const until = performance.now() + 30_000
          while (!note(key, await pay(url, key))) {
            assert.ok(performance.now() < until, `${key} (${howOf(key)}) has no answer: ${paid.get(key)}`)
            await sleep(50)
          }
        }
        assert.equal(
          paid.get(key)?.length,
          1,
          `${key} (${howOf(key)}) was paid ${paid.get(key)?.length} times`,
        )
        for (const { status, receipt } of seen.get(key) ?? []) {
          assert.deepEqual([status, receipt], [STATUS[howOf(key)] ?? 201, paid.get(key)?.[0]], key)
        }
        assert.ok(seen.get(key)?.at(-1)?.replayed, key)
      }
    })
  }
})
