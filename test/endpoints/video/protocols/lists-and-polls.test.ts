import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { startVideoGateway, TASKS, videoUpstreamFor } from '../../../support/video-gateway.ts'
import {
  ARK_VIDEO,
  createTask,
  errorOf,
  OPENAI_VIDEO,
  PAIRINGS,
  readTask,
  type SeenTask,
  VIDEO_PROTOCOLS,
} from '../../../support/video-protocols.ts'
import { json } from '../../../support/video-upstream.ts'

interface TaskList {
  readonly items: SeenTask[]
  readonly total: number
}

describe('the task-style list', () => {
  it('pages, and is narrowed by status, model and ids', async (t) => {
    const upstream = await videoUpstreamFor(t)
    const gateway = await startVideoGateway(t, { lines: [{ kind: 'ark', url: upstream.url }] })
    const list = async (query: string) =>
      (await (await gateway.send('GET', `${TASKS}?${query}`)).json()) as TaskList
    const made: string[] = []
    for (let i = 0; i < 5; i++) made.push(await createTask(gateway, ARK_VIDEO))
    const newest = made.toSorted().reverse()
    const second = await list('page_num=2&page_size=2')
    assert.deepEqual([second.items.map(({ id }) => id), second.total], [newest.slice(2, 4), 5])
    upstream.last.status = 'succeeded'
    const done = made[4] as string
    await readTask(gateway, ARK_VIDEO, done)
    const succeeded = await list('filter.status=succeeded')
    assert.deepEqual([succeeded.items.map(({ id }) => id), succeeded.total], [[done], 1])
    const ids = `filter.task_ids=${made[0]}&filter.task_ids=${made[1]}`
    assert.equal((await list(ids)).total, 2)
    assert.equal((await list(`filter.task_ids=${made[0]},${made[1]},${made[2]}`)).total, 3)
    assert.equal((await list(`filter.task_ids=${made[0]}`)).total, 1)
    assert.equal((await list('filter.model=video')).total, 5)
    assert.deepEqual(await list('filter.model=another'), { items: [], total: 0 })
    assert.deepEqual((await list('page_num=9')).items, [])
  })

  for (const query of [
    'page_size=0',
    'page_size=x',
    'page_num=0',
    'filter.status=done',
    'page_num=1&page_num=2',
  ]) {
    it(`refuses ${query}, naming the parameter`, async (t) => {
      const upstream = await videoUpstreamFor(t)
      const gateway = await startVideoGateway(t, { lines: [{ kind: 'ark', url: upstream.url }] })
      const error = await errorOf(await gateway.send('GET', `${TASKS}?${query}`))
      assert.deepEqual([error.code, error.param], ['invalid_request', query.split('=')[0]])
    })
  }

  it('has pages of about 1 MiB at most, as the OpenAI-style one has', async (t) => {
    const upstream = await videoUpstreamFor(t)
    const gateway = await startVideoGateway(t, { lines: [{ kind: 'ark', url: upstream.url }] })
    const made: string[] = []
    for (let i = 0; i < 5; i++) made.unshift(await createTask(gateway, ARK_VIDEO))
    const stored = gateway.tasks.list.bind(gateway.tasks)
    gateway.tasks.list = async (...asked) =>
      (await stored(...asked)).map((task) => ({ ...task, model: 'm'.repeat(400_000) }))
    const error = await errorOf(await gateway.send('GET', TASKS))
    assert.deepEqual([error.code, error.param], ['invalid_request', 'page_size'])
    const page = (await (await gateway.send('GET', `${TASKS}?page_size=2&page_num=2`)).json()) as TaskList
    assert.deepEqual(
      page.items.map(({ id }) => id),
      made.slice(2, 4),
    )
    const seen: string[] = []
    for (let more = true, query = ''; more; ) {
      const answer = await gateway.send('GET', `/v1/videos${query}`)
      const list = (await answer.json()) as { data: { id: string }[]; last_id: string; has_more: boolean }
      assert.ok(list.data.length > 0 && list.data.length <= 2)
      assert.equal(list.last_id, list.data.at(-1)?.id)
      seen.push(...list.data.map(({ id }) => id))
      more = list.has_more
      query = `?after=${list.last_id}`
    }
    assert.deepEqual(seen, made)
  })

  it('so does the OpenAI-style one', async (t) => {
    const upstream = await videoUpstreamFor(t)
    const gateway = await startVideoGateway(t, { lines: [{ kind: 'openai', url: upstream.url }] })
    for (const query of ['limit=0', 'limit=101', 'order=sideways']) {
      const error = await errorOf(await gateway.send('GET', `/v1/videos?${query}`))
      assert.deepEqual([error.code, error.param], ['invalid_request', query.split('=')[0]])
    }
  })
})

describe('a storm of polls', () => {
  for (const { caller, line } of PAIRINGS) {
    it(`${caller.kind} caller, ${line.kind} line: 100 at once are one question and one charge`, async (t) => {
      const upstream = await videoUpstreamFor(t)
      const gateway = await startVideoGateway(t, { lines: [{ kind: line.kind, url: upstream.url }] })
      const id = await createTask(gateway, caller, caller.kind === 'ark' ? { duration: 5 } : { seconds: '5' })
      upstream.last.status = line.words.succeeded
      const polls = await Promise.all(Array.from({ length: 100 }, () => readTask(gateway, caller, id)))
      for (const { status } of polls) assert.equal(status, caller.words.succeeded)
      assert.deepEqual(await gateway.money(), { spent: 500_000_000n, leased: 0n })
      await readTask(gateway, caller, id)
      assert.ok(upstream.seen('GET').length < 100)
      assert.deepEqual((await gateway.ledger.check()).violations, [])
    })
  }
})

describe('a task that no caller asks about', () => {
  for (const { kind, words } of VIDEO_PROTOCOLS) {
    it(`${kind} line: is charged all the same`, async (t) => {
      const upstream = await videoUpstreamFor(t)
      const gateway = await startVideoGateway(t, { lines: [{ kind, url: upstream.url }], settles: true })
      await createTask(gateway, OPENAI_VIDEO)
      upstream.last.status = words.succeeded
      const deadline = performance.now() + 10_000
      while ((await gateway.money()).leased > 0n && performance.now() < deadline)
        await new Promise((resolve) => setTimeout(resolve, 5))
      assert.deepEqual(await gateway.money(), { spent: 400_000_000n, leased: 0n })
    })
  }
})

describe('a line that does not answer about its task', () => {
  for (const { caller, line } of PAIRINGS) {
    const name = `${caller.kind} caller, ${line.kind} line`

    it(`${name}: reads return the last known state, cancels say what is wrong`, async (t) => {
      const upstream = await videoUpstreamFor(t)
      const gateway = await startVideoGateway(t, { lines: [{ kind: line.kind, url: upstream.url }] })
      const id = await createTask(gateway, caller)
      upstream.script = (_req, res) => {
        json(res, 500, { error: { message: 'at 10.0.0.7' } })
        return true
      }
      assert.equal((await readTask(gateway, caller, id)).status, caller.words.queued)
      const refused = await gateway.send('DELETE', `${caller.path}/${id}`)
      assert.equal((await errorOf(refused)).code, 'upstream_error')
      assert.ok((await gateway.money()).leased > 0n)
    })

    it(`${name}: a cancel is asked to wait as long as the line asks, a minute at most`, async (t) => {
      const upstream = await videoUpstreamFor(t)
      const gateway = await startVideoGateway(t, { lines: [{ kind: line.kind, url: upstream.url }] })
      const id = await createTask(gateway, caller)
      for (const limited of ['GET', 'DELETE'])
        for (const [asked, told] of [
          ['7', '7'],
          ['86400', '60'],
          ['Infinity', '60'],
          ['Fri, 01 Jan 2100 00:00:00 GMT', '60'],
        ] as const) {
          upstream.script = ({ method }, res) => {
            if (method === limited) json(res, 429, {}, { 'retry-after': asked })
            return method === limited
          }
          const { status, headers } = await gateway.send('DELETE', `${caller.path}/${id}`)
          assert.deepEqual([status, headers.get('retry-after')], [429, told], `${limited}: ${asked}`)
        }
    })

    it(`${name}: one that has forgotten it for a moment has not lost it`, async (t) => {
      const upstream = await videoUpstreamFor(t)
      const gateway = await startVideoGateway(t, { lines: [{ kind: line.kind, url: upstream.url }] })
      const id = await createTask(gateway, caller)
      const { last } = upstream
      upstream.tasks.delete(last.id)
      assert.equal((await readTask(gateway, caller, id)).status, caller.words.queued)
      const refused = await gateway.send('DELETE', `${caller.path}/${id}`)
      assert.equal((await errorOf(refused)).code, 'upstream_error')
      upstream.tasks.set(last.id, last)
      last.status = line.words.succeeded
      assert.equal((await readTask(gateway, caller, id)).status, caller.words.succeeded)
    })

    it(`${name}: one that began just then is not cancelled`, async (t) => {
      const upstream = await videoUpstreamFor(t)
      const gateway = await startVideoGateway(t, { lines: [{ kind: line.kind, url: upstream.url }] })
      const id = await createTask(gateway, caller)
      upstream.script = (req) => {
        if (req.method === 'DELETE') upstream.last.status = line.words.running
        return false
      }
      const refused = await gateway.send('DELETE', `${caller.path}/${id}`)
      assert.equal((await errorOf(refused)).code, 'conflict')
      assert.ok((await gateway.money()).leased > 0n)
    })
  }
})

describe('a word that no protocol has', () => {
  it('is logged for the operator once, and shown to no caller', async (t) => {
    const upstream = await videoUpstreamFor(t)
    const gateway = await startVideoGateway(t, { lines: [{ kind: 'ark', url: upstream.url }] })
    const id = await createTask(gateway, ARK_VIDEO)
    upstream.last.status = 'pondering'
    for (let i = 0; i < 3; i++) assert.equal((await readTask(gateway, ARK_VIDEO, id)).status, 'running')
    const told = gateway.logger.lines.filter(({ fields }) => fields.status === 'pondering')
    assert.deepEqual([told.length, told[0]?.fields.line], [1, 'line-0'])
  })

  it('cancelled and expired upstream read failed on the OpenAI-style protocol', async (t) => {
    const upstream = await videoUpstreamFor(t)
    const gateway = await startVideoGateway(t, { lines: [{ kind: 'ark', url: upstream.url }] })
    for (const [status, asTask] of [
      ['cancelled', 'cancelled'],
      ['expired', 'failed'],
    ] as const) {
      const id = await createTask(gateway, OPENAI_VIDEO)
      upstream.last.status = status
      const seen = await readTask(gateway, OPENAI_VIDEO, id)
      assert.equal(seen.status, 'failed')
      assert.ok(seen.error)
      assert.equal((await readTask(gateway, ARK_VIDEO, id)).status, asTask)
    }
    assert.deepEqual(await gateway.money(), { spent: 0n, leased: 0n })
  })
})

describe('an id that is none', () => {
  const ids = [
    '..',
    '%2e%2e',
    '..%2f..%2fadmin',
    'video_1%2f..',
    'video_',
    'VIDEO_1',
    'x'.repeat(500),
    '%00',
    'up-1',
  ]
  for (const { path } of VIDEO_PROTOCOLS) {
    for (const id of ids) {
      it(`is not found at ${path}: ${id.slice(0, 30)}`, async (t) => {
        const upstream = await videoUpstreamFor(t)
        const gateway = await startVideoGateway(t, { lines: [{ kind: 'openai', url: upstream.url }] })
        for (const method of ['GET', 'DELETE']) {
          const response = await gateway.send(method, `${path}/${id}/`.replace(/\/$/, ''))
          // Clients resolve plain dots themselves.
          if (id !== '..' && id !== '%2e%2e') assert.equal(response.status, 404)
        }
        assert.equal(upstream.requests.length, 0)
      })
    }
  }
})
