import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, test } from 'node:test'
import { throughputSection, withSection, workersSection } from './benchmarks-page.ts'
import type { ThroughputRow } from './report.ts'

const NOTHING: ThroughputRow = {
  case: '',
  target: '',
  unit: 'requests',
  perSecond: 0,
  p50Ms: 0,
  p99Ms: 0,
  addedP50Ms: null,
  ratio: null,
  ratioRange: null,
  cpuRatio: null,
  targetCpu: null,
  loadCoreBusy: null,
  othersOnTargetCore: null,
  cpuMicrosPerUnit: null,
}

const row = (target: string, name: string, figures: Partial<ThroughputRow>): ThroughputRow => ({
  ...NOTHING,
  target,
  case: name,
  ...figures,
})

const RUN = {
  date: '2026-01-31',
  machine: 'A machine, 2 cores, Node 24.0.0',
  rounds: 5,
  seconds: 4,
  rows: [
    row('whole-memory', 'plain-32', { perSecond: 11_000.4, ratio: 0.5512, p99Ms: 4.04 }),
    row('whole-memory', 'long-16', { perSecond: 160.6 }),
    row('relay', 'plain-32', { perSecond: 20_000, ratio: 1, p99Ms: 2 }),
    row('relay', 'coalesced-32', { perSecond: 820_205 }),
    row('relay', 'plain-1', { addedP50Ms: 0 }),
    row('whole-memory', 'plain-1', { addedP50Ms: 0.0849 }),
    row('(upstream alone)', 'plain-32', { perSecond: 40_000 }),
  ],
}

describe('the generated section of the benchmarks page', () => {
  test('has the date, the machine and a row for each target of the page, whatever the order of the results', () => {
    const section = throughputSection(RUN)
    assert.equal(
      section,
      `2026-01-31, A machine, 2 cores, Node 24.0.0. One core each, 32 connections (long prompts: 16), medians of 5 rounds of 4 s. \`relay\` only passes requests on; \`added\` is the p50 above it on one connection:

|  | calls/s | ratio | p99 ms | added ms | streamed chunks/s | 330 KB prompts/s |
| --- | --- | --- | --- | --- | --- | --- |
| \`relay\` | 20,000 | 1.00 | 2.0 | 0.00 | 820,205 |  |
| whole chain in memory (billing too) | 11,000 | 0.55 | 4.0 | 0.08 |  | 161 |`,
    )
    assert.equal(throughputSection({ ...RUN, rows: RUN.rows.toReversed() }), section)
  })

  test('has a row for each number of workers', () => {
    const { date, machine, rounds, seconds } = RUN
    assert.equal(
      workersSection({
        ...{ date, machine, rounds, seconds, stores: 'sqlite', connections: 64 },
        rows: [{ shape: '4', perSecond: 3200.4, cpuMicros: 414.2, firstMicros: 25.4 }],
      }),
      `2026-01-31, A machine, 2 cores, Node 24.0.0, shared with the load. SQLite, 64 connections, medians of 5 rounds of 4 s:

| \`WORKERS\` | calls/s | CPU µs a call | first process |
| --- | --- | --- | --- |
| 4 | 3,200 | 414 | 25 |`,
    )
  })

  test('replaces its own text, leaves the rest of the page, and is the same when it is written again', () => {
    const page = readFileSync(join(import.meta.dirname, '../../docs/benchmarks.md'), 'utf8')
    const written = withSection(page, 'throughput', throughputSection(RUN))
    assert.equal(withSection(written, 'throughput', throughputSection(RUN)), written)
    const outside = (text: string) => text.replace(/(<!-- bench throughput -->).*(<!-- \/bench)/s, '$1$2')
    assert.equal(outside(written), outside(page))
    assert.match(written, /\| 11,000 \|/)
  })

  test('is refused where the page has no place for it', () => {
    assert.throws(() => withSection('# Benchmarks\n', 'throughput', 'x'), /no <!-- bench throughput -->/)
  })
})
