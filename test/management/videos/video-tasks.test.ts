import assert from 'node:assert/strict'
import { it } from 'node:test'
import { MemoryTaskStore } from '../../../lib/endpoints/video/index.ts'
import { MemoryLedger } from '../../../lib/ledger/index.ts'
import { type AccountStore, adminAccess, adminRoutes } from '../../../lib/management/index.ts'
import { errorEnvelope, unknownPath } from '../../../lib/middleware/error-envelope/index.ts'
import { intended, intentOf, NOON, taken } from '../../contracts/task-samples.ts'
import { jsonOf } from '../../support/answer-bodies.ts'
import { serveApp } from '../../support/app-server.ts'
import { type AdminBody, SEED, TOKEN } from '../admin-server.ts'

const WHO = { account: 'acme', key: 'key_acme' }

async function serveTasks() {
  const ledger = new MemoryLedger(SEED)
  const accounts = { deposit() {} } as unknown as AccountStore
  const store = new MemoryTaskStore({ money: ledger.holds })
  const server = await serveApp((app) => {
    app.use('/admin', adminAccess({ token: TOKEN }), adminRoutes({ accounts, ledger, videoTasks: store }))
    app.use('/plain', adminRoutes({ accounts, ledger }))
    app.use(unknownPath(), errorEnvelope())
  })
  const ask = async (path: string, headers = { authorization: `Bearer ${TOKEN}` }) => {
    const response = await fetch(server.url + path, { headers })
    return { status: response.status, body: await jsonOf<AdminBody>(response) }
  }
  return { store, ask, close: () => server.close() }
}

it('shows those who run the service the videos that are under way, in doubt and over', async (t) => {
  const { store, ask, close } = await serveTasks()
  t.after(close)
  const doubtful = await intended(store, intentOf(WHO, { createdAt: NOON }))
  await store.markUnresolved(doubtful.id, NOON + 60_000)
  const over = await taken(store, WHO, { createdAt: NOON + 1 })
  await store.observe(over.id, { state: 'succeeded' }, NOON + 2)
  const failed = await taken(store, WHO, { createdAt: NOON + 2 })
  await store.observe(failed.id, { state: 'failed' }, NOON + 3)
  const stranger = await taken(store, { account: 'globex', key: 'key_acme' }, { createdAt: NOON + 3 })

  const { body } = await ask('/admin/video-tasks?state=unresolved')
  assert.deepEqual(body, {
    object: 'list',
    data: [
      {
        id: doubtful.id,
        object: 'video_task',
        request_id: doubtful.requestId,
        account: 'acme',
        key: 'key_acme',
        model: 'video-small',
        protocol: 'openai',
        line: 'line-a',
        upstream_model: 'sora-2',
        upstream_id: null,
        state: 'unresolved',
        progress: null,
        held: '0.000000085',
        charged: null,
        error_code: null,
        missing_since: null,
        created_at: '2026-01-31T12:00:00.000Z',
        updated_at: '2026-01-31T12:01:00.000Z',
        finished_at: null,
      },
    ],
    next_cursor: null,
  })
  const pages = await ask('/admin/video-tasks?account=acme&limit=2')
  assert.deepEqual(
    pages.body.data.map(({ id }) => id),
    [failed.id, over.id],
  )
  const rest = await ask(`/admin/video-tasks?account=acme&cursor=${pages.body.next_cursor}`)
  assert.deepEqual(
    rest.body.data.map(({ id }) => id),
    [doubtful.id],
  )
  const ended = Object.entries((await ask(`/admin/video-tasks/${over.id}`)).body)
  const kept = ['state', 'held', 'charged', 'error_code']
  assert.deepEqual(Object.fromEntries(ended.filter(([name]) => kept.includes(name))), {
    state: 'succeeded',
    held: '0',
    charged: '0.000000085',
    error_code: null,
  })
  assert.equal((await ask(`/admin/video-tasks/${stranger.id}`)).body.id, stranger.id)
})

it('refuses what it cannot read, and requests without a token', async (t) => {
  const { ask, close } = await serveTasks()
  t.after(close)
  for (const [query, param] of [
    ['state=done', 'state'],
    ['state=queued&state=running', 'state'],
    ['account=a&account=b', 'account'],
    ['limit=0', 'limit'],
  ] as const) {
    const { status, body } = await ask(`/admin/video-tasks?${query}`)
    assert.deepEqual([status, body.error.code, body.error.param], [400, 'invalid_request', param])
  }
  assert.equal((await ask('/admin/video-tasks/video_none')).status, 404)
  assert.equal((await ask('/admin/video-tasks', { authorization: '' })).status, 401)
  assert.equal((await ask('/plain/video-tasks')).status, 404, 'without a store there are no such paths')
})
