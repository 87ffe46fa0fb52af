import assert from 'node:assert/strict'
import { before, describe, it } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { Client } from 'undici'
import { mergeWorkerLines } from '../../../examples/gateway/workers/merged-lines.ts'
import { line as lineSchema } from '../../../lib/management/lines/lines.ts'
import type { LineFigures } from '../../../lib/middleware/route/index.ts'
import { Scrape } from '../../middleware/telemetry/scrape.ts'
import { cleaningUp } from '../../support/clean-up.ts'
import { chatAnswer } from '../../support/scripted-upstream.ts'
import { untilAsync } from '../../support/until.ts'
import { type FileGateway, startFileGateway } from './file-gateway.ts'
import { askedChat } from './keep-alive-load.ts'

interface OneWorker {
  readonly worker: number
  readonly pid: number
  readonly answered: boolean
  readonly circuit?: string
  readonly recent_attempts?: number
}

type Line = LineFigures & { readonly workers: readonly OneWorker[] }

const CALLS = askedChat()

/** In the order of the file: the last leaves a worker that has seen nothing. */
describe('the report on several workers', () => {
  const cleanUp = cleaningUp()
  let server: FileGateway
  before(async () => {
    server = await startFileGateway(cleanUp, { WORKERS: '2' })
    await untilAsync(async () => (await line()).workers.length === 2, 'both workers')
  })

  const line = async (): Promise<Line> => lineSchema.parse(JSON.parse(await get('/admin/lines/one'))) as Line
  /** An answer may be a second old. */
  const scrape = async (): Promise<Scrape> => {
    await sleep(1100)
    return new Scrape(await get('/metrics'))
  }
  /** On a connection of its own; on another one where the worker that took it was stopped. */
  const get = async (path: string): Promise<string> => {
    for (;;) {
      const client = new Client(server.gateway.url)
      const headers = { authorization: `Bearer ${String(server.env.ADMIN_TOKEN)}` }
      const asked = client.request({ path, method: 'GET', headers }).then(({ body }) => body.text())
      const text = await Promise.race([asked, sleep(2500, undefined, { ref: false })]).finally(() =>
        client.destroy(),
      )
      if (text !== undefined) return text
      asked.catch(() => {})
    }
  }
  const ask = async (client: Client): Promise<number> => {
    const { path, headers, body } = CALLS
    const answer = await client.request({ path, method: 'POST', headers, body })
    await answer.body.text()
    return answer.statusCode
  }
  /** A connection to each: which takes one is up to the system. */
  const onePerWorker = async (): Promise<Client[]> => {
    const clients: Client[] = []
    const served = async () =>
      (await line()).workers.map(({ worker, recent_attempts = 0 }) => ({ worker, recent_attempts }))
    const found = new Set<number>()
    while (found.size < 2) {
      const before = await served()
      const client = new Client(server.gateway.url)
      assert.equal(await ask(client), 200)
      const after = await served()
      const now = after.find((one, i) => one.recent_attempts > (before[i]?.recent_attempts ?? 0))
      if (now && !found.has(now.worker)) {
        found.add(now.worker)
        clients.push(client)
        cleanUp.after(() => client.destroy())
      } else await client.close()
    }
    return clients
  }

  let clients: Client[] = []
  it('is of all of them, whichever is asked: counters are sums, and the rest has its worker', async () => {
    clients = await onePerWorker()
    for (const client of clients) for (let i = 0; i < 3; i++) assert.equal(await ask(client), 200)
    const { recent_attempts: attempts } = await line()
    const asked = server.upstream.requests.length
    assert.equal(attempts, asked)
    for (let i = 0; i < 8; i++) {
      const told = await scrape()
      assert.equal(told.sum('model_gateway_calls_total', { model_gateway_outcome: 'completed' }), asked)
      assert.deepEqual([...told.valuesOf('worker')].sort(), ['1', '2'])
      for (const worker of ['1', '2']) {
        assert.equal(told.of('model_gateway_calls_open', { worker }).length, 1)
        assert.deepEqual(
          told.of('model_gateway_worker_answered', { worker }).map(({ value }) => value),
          [1],
        )
      }
      assertWellFormed(told.text)
    }
  })

  it('has the worst circuit, and each worker’s own', async () => {
    const [first] = clients
    assert.ok(first)
    const before = await line()
    assert.equal(before.circuit, 'closed')
    server.upstream.script = (res) => void res.writeHead(500).end('{}')
    let sent = 0
    while ((await line()).circuit === 'closed') {
      assert.ok(sent++ < 30, 'its circuit opens')
      assert.notEqual(await ask(first), 200)
    }
    server.upstream.script = (res) => chatAnswer(res)
    const told = await line()
    assert.equal(told.circuit, 'open')
    assert.ok(told.retry_after_ms !== null && told.retry_after_ms > 0)
    assert.deepEqual(told.workers.map(({ circuit }) => circuit).sort(), ['closed', 'open'])
    assert.equal(told.recent_failures, sent)
    assert.equal(told.recent_attempts, before.recent_attempts + sent)
    const list = await server.admin<{ data: Line[] }>('/lines')
    assert.deepEqual(
      list.data.map(({ workers }) => workers.length),
      [2],
    )
    const open = (await scrape()).of('model_gateway_line_circuit_state', {
      model_gateway_circuit_state: 'open',
    })
    assert.deepEqual(open.map(({ value }) => value).sort(), [0, 1])
  })

  it('leaves out one that does not answer within a second, and says so', async () => {
    const [stopped] = (await line()).workers
    assert.ok(stopped)
    const counted = (await scrape()).sum('model_gateway_calls_total')
    process.kill(stopped.pid, 'SIGSTOP')
    try {
      const told = await scrape()
      assert.deepEqual(
        told
          .of('model_gateway_worker_answered')
          .map(({ labels, value }) => [labels.worker, value])
          .sort(),
        [
          ['1', stopped.worker === 1 ? 0 : 1],
          ['2', stopped.worker === 2 ? 0 : 1],
        ],
      )
      assert.equal(told.of('model_gateway_calls_open', { worker: `${stopped.worker}` }).length, 0)
      assert.ok(told.sum('model_gateway_calls_total') >= counted, 'what it had counted stays in the sum')
      const { workers } = await line()
      const silent = workers.find(({ pid }) => pid === stopped.pid)
      assert.deepEqual(silent, { worker: stopped.worker, pid: stopped.pid, answered: false })
      assert.equal(workers.filter(({ answered }) => answered).length, 1)
    } finally {
      process.kill(stopped.pid, 'SIGCONT')
    }
    await untilAsync(async () => (await line()).workers.every(({ answered }) => answered), 'all answer again')
  })

  it('gives the number of one that has died to the next', async () => {
    const [victim] = (await line()).workers
    assert.ok(victim)
    const counted = (await scrape()).sum('model_gateway_calls_total')
    process.kill(victim.pid, 'SIGKILL')
    await untilAsync(async () => {
      const { workers } = await line().catch((): Pick<Line, 'workers'> => ({ workers: [] }))
      return workers.length === 2 && workers.every(({ pid }) => pid !== victim.pid)
    }, 'another one')
    const { workers } = await line()
    assert.deepEqual(
      workers.map(({ worker }) => worker),
      [1, 2],
    )
    assert.ok((await scrape()).sum('model_gateway_calls_total') >= counted, 'no sum drops')
  })
})

describe('the figures of a line, merged', () => {
  const figures = (members: Partial<LineFigures>): LineFigures => ({
    id: 'l',
    provider: 'p',
    protocol: 'openai',
    region: null,
    enabled: true,
    priority: 0,
    weight: 1,
    availability: 'unknown',
    circuit: 'closed',
    retry_after_ms: null,
    rest_ms: 0,
    in_flight: 0,
    first_byte_ms: null,
    tokens_per_second: null,
    recent_attempts: 0,
    recent_failures: 0,
    error_share: null,
    rests: [],
    circuits: [],
    ...members,
  })
  const merge = (...told: (LineFigures | null)[]) => {
    const reports = told.map((line, i) => ({ worker: i + 1, pid: i, figures: line && [line] }))
    const [merged] = mergeWorkerLines([figures({})], reports)
    assert.ok(merged)
    return merged
  }

  it('weigh what is averaged by the attempts of late, and sum what is counted', () => {
    const merged = merge(
      figures({ first_byte_ms: 100, recent_attempts: 30, recent_failures: 0, in_flight: 2, error_share: 0 }),
      figures({
        first_byte_ms: 900,
        recent_attempts: 10,
        recent_failures: 5,
        in_flight: 3,
        error_share: 0.5,
      }),
      figures({ first_byte_ms: 5000, tokens_per_second: 40 }),
      null,
    )
    const { first_byte_ms, tokens_per_second, recent_attempts, recent_failures, error_share, in_flight } =
      merged
    assert.deepEqual(
      [first_byte_ms, tokens_per_second, recent_attempts, recent_failures, error_share, in_flight],
      [300, 40, 40, 5, 0.125, 5],
    )
  })

  it('wait for the worker that is to wait longest', () => {
    const merged = merge(
      figures({ circuit: 'half_open', retry_after_ms: 100 }),
      figures({ circuit: 'open', retry_after_ms: 9000, rest_ms: 5 }),
      figures({ rest_ms: 70 }),
    )
    assert.deepEqual([merged.circuit, merged.retry_after_ms, merged.rest_ms], ['open', 9000, 70])
  })

  it('are those of the process that is asked where none answers', () => {
    const merged = merge(null, null)
    assert.deepEqual([merged.circuit, merged.first_byte_ms, merged.workers.length], ['closed', null, 2])
  })
})

/** Each metric is described once, and its samples stand together. */
function assertWellFormed(text: string): void {
  const types = [...text.matchAll(/^# TYPE (\S+) /gm)].map(([, name]) => name)
  assert.deepEqual(types, [...new Set(types)])
  let last = ''
  const ended = new Set<string>()
  for (const row of text.split('\n').filter((each) => each !== '' && !each.startsWith('#'))) {
    const name = row.slice(0, row.search(/[{ ]/)).replace(/_(?:bucket|sum|count)$/, '')
    if (name === last) continue
    assert.ok(!ended.has(name), `${name} stands in two places`)
    ended.add(last)
    last = name
  }
}
