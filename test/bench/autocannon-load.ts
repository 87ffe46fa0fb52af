/** One load run with autocannon, in a process of its own so that it can be pinned: takes a `Load` on stdin, prints a `LoadResult`. */
import type { EventEmitter } from 'node:events'
import { createRequire } from 'node:module'
import { text } from 'node:stream/consumers'
import type { Load, LoadResult } from './load.ts'
import { percentile } from './statistics.ts'
import { headersTo } from './workload.ts'

interface Summary {
  duration: number
  errors: number
  mismatches: number
  non2xx: number
}

type Autocannon = (options: object, done: (error: Error | null, summary: Summary) => void) => EventEmitter

const autocannon = createRequire(import.meta.url)('autocannon') as Autocannon
const load = JSON.parse(await text(process.stdin)) as Load
const { headers = headersTo({ name: '' }) } = load
// autocannon's own histogram knows whole milliseconds only.
const durationsMs: number[] = []

const instance = autocannon(
  {
    url: load.url,
    method: 'POST',
    headers,
    ...(load.keys && {
      requests: load.keys.map((key) => ({
        headers: { ...headers, authorization: `Bearer ${key}` },
      })),
    }),
    body: load.body,
    connections: load.connections,
    duration: load.seconds,
    sampleInt: 100,
    verifyBody: (body: string) => Buffer.byteLength(body) === load.expectedBytes,
  },
  (error, summary) => {
    if (error !== null) throw error
    const result: LoadResult = {
      completed: durationsMs.length,
      seconds: summary.duration,
      p50Ms: percentile(durationsMs, 50),
      p99Ms: percentile(durationsMs, 99),
      faults: summary.errors + summary.mismatches + summary.non2xx,
    }
    process.stdout.write(`${JSON.stringify(result)}\n`)
  },
)
instance.on('response', (_client: unknown, _status: number, _bytes: number, durationMs: number) => {
  durationsMs.push(durationMs)
})
