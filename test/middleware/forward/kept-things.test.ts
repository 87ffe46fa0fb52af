import assert from 'node:assert/strict'
import { describe, it, type TestContext } from 'node:test'
import { KeptThings, MemoryKeptStore } from '../../../lib/middleware/references/index.ts'
import { envelopeOf } from '../../support/answer-bodies.ts'
import { type ForwardGateway, forwardGateway, OTHER_KEY } from '../../support/forward-gateway.ts'
import { answerJson, type ScriptedUpstream, startUpstream } from '../../support/scripted-upstream.ts'

/** Collections of real APIs, and the kind of what they keep. */
const COLLECTIONS = [
  ['/v1/files', 'file'],
  ['/v1/uploads', 'upload'],
  ['/v1/vector_stores', 'vector_store'],
  ['/v1/conversations', 'conversation'],
  ['/v1/containers', 'container'],
  ['/v1/batches', 'batch'],
  ['/v1/messages/batches', 'message_batch'],
  ['/v1/threads', 'thread'],
  ['/v1/assistants', 'assistant'],
  ['/v1/fine_tuning/jobs', 'fine_tuning_job'],
  ['/v1/evals', 'eval'],
  ['/v1/skills', 'skill'],
  ['/v1/cachedContents', 'cached_content'],
  ['/v1/agents', 'agent'],
  ['/v1/environments', 'environment'],
  ['/v1/sessions', 'session'],
  ['/v1/vaults', 'vault'],
  ['/v1/memory_stores', 'memory_store'],
  ['/v1/deployments', 'deployment'],
  ['/v1/deployment_runs', 'deployment_run'],
  ['/v1/dreams', 'dream'],
  ['/v1/tunnels', 'tunnel'],
  ['/v1/user_profiles', 'user_profile'],
  ['/v1/chatkit/threads', 'chatkit_thread'],
  ['/v1/realtime/calls', 'call'],
  ['/v1/audio/voices', 'voice'],
  ['/v1/audio/voice_consents', 'voice_consent'],
  ['/v1/webhook_endpoints', 'webhook_endpoint'],
  ['/v1/voices', 'voice'],
] as const

/** An upstream whose ids say its name. */
async function keeping(t: TestContext, name: string): Promise<ScriptedUpstream> {
  const made: string[] = []
  const upstream = await startUpstream((res, { method, path: target }) => {
    const path = target.replace(/\?.*$/, '')
    if (method === 'POST' && !path.includes('_of_')) {
      const id = `thing_of_${name}_${made.length}`
      made.push(id)
      return answerJson(res, 200, { id, object: 'thing', metadata: { file_id: 'file_of_nobody' } })
    }
    answerJson(res, 200, { id: path.split('/').at(-1), method, deleted: method === 'DELETE' })
  })
  t.after(() => upstream.close())
  return upstream
}

interface TwoLines {
  readonly one: ScriptedUpstream
  readonly two: ScriptedUpstream
  readonly gateway: ForwardGateway
  readonly store: MemoryKeptStore
  /** Asks as a tenant. */
  as(key: 'acme' | 'globex', method: string, path: string, body?: unknown): Promise<Response>
  /** Forgets what was asked of the upstreams. */
  reset(): void
}

/** Two lines, of which the first is tried first; the rules can reach both. */
async function twoLines(t: TestContext): Promise<TwoLines> {
  const one = await keeping(t, 'one')
  const two = await keeping(t, 'two')
  const store = new MemoryKeptStore()
  const rules = COLLECTIONS.flatMap(([path, kind]) => {
    const keeps = kind === 'voice' ? { keeps: kind } : {}
    return [path, `${path}/*rest`].map((each) => ({ path: each, lines: ['line-0', 'line-1'], ...keeps }))
  })
  rules.push({ path: '/v1/audio/*rest', lines: ['line-0', 'line-1'] })
  const kept = new KeptThings({ store })
  const gateway = await forwardGateway(t, { lines: [one.url, two.url], rules, kept })
  return {
    one,
    two,
    gateway,
    store,
    as: (key, method, path, body) =>
      gateway.ask(path, {
        method,
        headers: {
          ...(key === 'globex' && { authorization: `Bearer ${OTHER_KEY}` }),
          ...(body !== undefined && { 'content-type': 'application/json' }),
        },
        ...(body !== undefined && { body: JSON.stringify(body) }),
      }),
    reset() {
      one.requests.length = 0
      two.requests.length = 0
    },
  }
}

describe('a thing that a line keeps', () => {
  for (const [path, kind] of COLLECTIONS) {
    it(`is used, listed and deleted by its own account only: ${path}`, async (t) => {
      const { one, two, as, reset, store } = await twoLines(t)
      const own = ((await (await as('acme', 'POST', path, {})).json()) as { id: string }).id
      const others = ((await (await as('globex', 'POST', path, {})).json()) as { id: string }).id
      assert.equal((await store.find('acme', [{ kind, id: own }]))[0]?.line, 'line-0')
      reset()

      for (const id of [others, 'thing_of_nobody', 'x'.repeat(3000)]) {
        for (const [method, rest] of [
          ['GET', ''],
          ['GET', '/content'],
          ['HEAD', ''],
          ['POST', ''],
          ['POST', '/cancel'],
          ['PATCH', ''],
          ['PUT', ''],
          ['DELETE', ''],
          ['DELETE', '/items/1'],
        ] as const) {
          const answer = await as('acme', method, `${path}/${id}${rest}`)
          assert.equal(answer.status, 404, `${method} ${id}${rest}`)
          if (method !== 'HEAD' && !path.includes('messages'))
            assert.equal((await envelopeOf(answer)).error.code, 'not_found')
        }
      }
      for (const odd of [
        path.replace('/v1/', '/v1//'),
        path.toUpperCase().replace('/V1/', '/v1/'),
        `${path}/`,
      ])
        assert.equal((await as('acme', 'GET', `${odd}/${others}`)).status, 404, odd)
      assert.equal((await as('acme', 'GET', `${path}?after=${others}`)).status, 400)
      assert.equal(one.requests.length + two.requests.length, 0, 'no line was asked')

      assert.equal((await as('acme', 'GET', `${path}/${own}/content`)).status, 200)
      const things = [{ id: own, method: 'GET', deleted: false }]
      const ends = { first_id: own, last_id: own, has_more: false, next_page: null }
      assert.deepEqual(
        await (await as('acme', 'GET', path)).json(),
        kind === 'cached_content' ? { cachedContents: things } : { object: 'list', data: things, ...ends },
      )
      assert.equal((await as('acme', 'GET', `${path}?after=${own}`)).status, 200)
      assert.equal((await as('acme', 'DELETE', `${path}/${own}`)).status, 200)
      assert.equal(two.requests.length, 0)
      reset()
      assert.equal((await as('acme', 'GET', `${path}/${own}`)).status, 404)
      assert.equal(one.requests.length, 0)
      assert.equal((await as('globex', 'GET', `${path}/${others}`)).status, 200)
    })

    it(`stays at its line, and goes to no other if that fails: ${path}`, async (t) => {
      const { one, two, as, reset } = await twoLines(t)
      await one.close()
      const own = ((await (await as('acme', 'POST', path, {})).json()) as { id: string }).id
      assert.match(own, /_of_two_/)
      reset()
      assert.equal((await as('acme', 'GET', `${path}/${own}`)).status, 200)
      assert.equal(two.requests.length, 1)
      await two.close()
      const failed = await as('acme', 'GET', `${path}/${own}`)
      assert.equal(failed.status, 502)
    })
  }
})
