import assert from 'node:assert/strict'
import { before, describe, it, type TestContext } from 'node:test'
import { gzipSync } from 'node:zlib'
import { MemoryResourceStore, UpstreamResources } from '../../../../lib/middleware/references/index.ts'
import { envelopeOf } from '../../../support/answer-bodies.ts'
import { type ByteScript, byteUpstream } from '../../../support/byte-upstream.ts'
import { type CleanUp, cleaningUp } from '../../../support/clean-up.ts'
import { type ForwardGateway, forwardGateway, OTHER_KEY } from '../../../support/forward-gateway.ts'
import { answerJson, type ScriptedUpstream, startUpstream } from '../../../support/scripted-upstream.ts'

describe('a resource that a line keeps', () => {
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
  async function keeping(t: CleanUp, name: string): Promise<ScriptedUpstream> {
    const made: string[] = []
    const upstream = await startUpstream((res, { method, path: target }) => {
      const path = target.replace(/\?.*$/, '')
      if (method === 'POST' && !path.includes('_of_')) {
        const id = `thing_of_${name}_${made.length}`
        made.push(id)
        return answerJson(res, 200, { id, object: 'resource', metadata: { file_id: 'file_of_nobody' } })
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
    readonly store: MemoryResourceStore
    /** Asks as a tenant. */
    as(key: 'acme' | 'globex', method: string, path: string, body?: unknown): Promise<Response>
    /** Forgets what was asked of the upstreams. */
    reset(): void
  }

  /** Two lines, of which the first is tried first; the rules can reach both. */
  async function twoLines(t: CleanUp): Promise<TwoLines> {
    const one = await keeping(t, 'one')
    const two = await keeping(t, 'two')
    const store = new MemoryResourceStore()
    const rules = COLLECTIONS.flatMap(([path, kind]) => {
      const keeps = kind === 'voice' ? { keeps: kind } : {}
      return [path, `${path}/*rest`].map((each) => ({ path: each, lines: ['line-0', 'line-1'], ...keeps }))
    })
    rules.push({ path: '/v1/audio/*rest', lines: ['line-0', 'line-1'] })
    const resources = new UpstreamResources({ store })
    const gateway = await forwardGateway(t, { lines: [one.url, two.url], rules, resources })
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

  const cleanUp = cleaningUp()
  let shared: TwoLines
  before(async () => {
    shared = await twoLines(cleanUp)
  })

  for (const [path, kind] of COLLECTIONS) {
    it(`is used, listed and deleted by its own account only: ${path}`, async () => {
      const { one, two, as, reset, store } = shared
      const own = ((await (await as('acme', 'POST', path, {})).json()) as { id: string }).id
      const others = ((await (await as('globex', 'POST', path, {})).json()) as { id: string }).id
      assert.equal((await store.find('acme', [{ kind, id: own }]))[0]?.line, 'line-0')
      reset()

      for (const id of ['thing_of_nobody', 'x'.repeat(3000)])
        assert.equal((await as('acme', 'GET', `${path}/${id}`)).status, 404, id)
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
        const answer = await as('acme', method, `${path}/${others}${rest}`)
        assert.equal(answer.status, 404, `${method} ${rest}`)
        if (method !== 'HEAD' && !path.includes('messages'))
          assert.equal((await envelopeOf(answer)).error.code, 'not_found')
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
      const resources = [{ id: own, method: 'GET', deleted: false }]
      const ends = { first_id: own, last_id: own, has_more: false, next_page: null }
      assert.deepEqual(
        await (await as('acme', 'GET', path)).json(),
        kind === 'cached_content'
          ? { cachedContents: resources }
          : { object: 'list', data: resources, ...ends },
      )
      assert.equal((await as('acme', 'GET', `${path}?after=${own}`)).status, 200)
      assert.equal((await as('acme', 'DELETE', `${path}/${own}`)).status, 200)
      assert.equal(two.requests.length, 0)
      reset()
      assert.equal((await as('acme', 'GET', `${path}/${own}`)).status, 404)
      assert.equal(one.requests.length, 0)
      assert.equal((await as('globex', 'GET', `${path}/${others}`)).status, 200)
    })

    // The line of a resource is no matter of its kind.
    if (!['/v1/files', '/v1/messages/batches', '/v1/cachedContents'].includes(path)) continue
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

describe('a batch of messages', () => {
  it('has its results at the gateway, where clients get them with their key', async (t) => {
    const path = '/v1/messages/batches'
    const results_url = `https://upstream.example${path}/batch_1/results`
    const upstream = await startUpstream((res, { method, path: at }) => {
      if (at.endsWith('/results')) return void res.end('{"custom_id":"a"}\n')
      const isMade = method === 'POST' && at === path
      answerJson(res, 200, { id: 'batch_1', results_url: isMade ? null : results_url })
    })
    t.after(() => upstream.close())
    const resources = new UpstreamResources({ store: new MemoryResourceStore() })
    t.after(() => resources.close())
    const rules = [path, `${path}/*rest`].map((each) => ({ path: each, lines: ['line-0'] }))
    const { ask, url } = await forwardGateway(t, { lines: [upstream.url], rules, resources })
    const read = async (at: string, method = 'GET') => await (await ask(at, { method })).json()

    assert.deepEqual(await read(path, 'POST'), { id: 'batch_1', results_url: null })
    const own = { id: 'batch_1', results_url: `${url}${path}/batch_1/results` }
    assert.deepEqual(await read(`${path}/batch_1`), own)
    assert.deepEqual(await read(`${path}/batch_1/cancel`, 'POST'), own)
    assert.deepEqual(((await read(path)) as { data: unknown }).data, [own])
    assert.equal(await (await ask(own.results_url.slice(url.length))).text(), '{"custom_id":"a"}\n')
  })
})

describe('a call of Realtime', () => {
  it('is that of its account, by the Location of an answer that is no JSON', async (t) => {
    const path = '/v1/realtime/calls'
    const sdp = { 'content-type': 'application/sdp' }
    for (const location of [`${path}/rtc_1`, `https://upstream.example${path}/rtc_1?a=b`]) {
      const upstream = await byteUpstream(t, (req, res) => {
        req.resume().on('end', () => res.writeHead(201, { ...sdp, location }).end('v=0'))
      })
      const resources = new UpstreamResources({ store: new MemoryResourceStore() })
      t.after(() => resources.close())
      const rules = [path, `${path}/*rest`].map((each) => ({ path: each, lines: ['line-0'] }))
      const { ask, url } = await forwardGateway(t, { lines: [upstream.url], rules, resources })
      const made = await ask(path, {
        method: 'POST',
        headers: sdp,
        body: 'v=0\r\no=- 1 2 IN IP4 127.0.0.1\r\n',
      })
      assert.deepEqual([made.status, await made.text()], [201, 'v=0'])
      assert.equal(made.headers.get('location'), `${url}${path}/rtc_1`)
      const hangUp = (key: object) => ask(`${path}/rtc_1/hangup`, { method: 'POST', ...key })
      assert.equal((await hangUp({})).status, 201)
      assert.equal((await hangUp({ headers: { authorization: `Bearer ${OTHER_KEY}` } })).status, 404)
    }
  })

  it('has no Location that names something else', async (t) => {
    for (const location of ['/v1/files/file_1', '/v1/realtime/calls', 'http://[', '/v1/realtime/calls/%']) {
      const upstream = await byteUpstream(t, (req, res) => {
        req.resume().on('end', () => res.writeHead(201, { location }).end('v=0'))
      })
      const resources = new UpstreamResources({ store: new MemoryResourceStore() })
      t.after(() => resources.close())
      const rules = [{ path: '/v1/realtime/calls', lines: ['line-0'] }]
      const { ask } = await forwardGateway(t, { lines: [upstream.url], rules, resources })
      const made = await ask('/v1/realtime/calls', { method: 'POST' })
      assert.deepEqual([made.status, made.headers.get('location')], [201, null], location)
    }
  })
})

describe('a forwarded request for a resource', () => {
  const MADE = '{"id":"file_1","object":"file"}'
  const JSON_TYPE = { 'content-type': 'application/json' }

  /** A line that makes `file_1` of every POST, and answers anything else as a test says. */
  async function keeping(
    t: TestContext,
    answer: ByteScript,
    made: ByteScript = (_req, res) => void res.writeHead(200, JSON_TYPE).end(MADE),
  ) {
    const upstream = await byteUpstream(t, (req, res) => {
      req.resume().on('end', () => (req.method === 'POST' ? made : answer)(req, res))
    })
    const store = new MemoryResourceStore()
    const resources = new UpstreamResources({ store })
    t.after(() => resources.close())
    const gateway = await forwardGateway(t, { lines: [upstream.url], resources })
    const ask = (method: string, path = '/v1/files/file_1') => gateway.ask(path, { method })
    const isOwned = async () => (await store.find('acme', [{ kind: 'file', id: 'file_1' }])).length === 1
    return { gateway, upstream, store, ask, isOwned, make: () => ask('POST', '/v1/files') }
  }

  describe('a resource that an account owns', () => {
    for (const [status, stays] of [
      [200, false],
      [202, false],
      [204, false],
      [304, true],
      [400, true],
      [404, true],
      [409, true],
      [412, true],
      [416, true],
      [500, true],
    ] as const)
      it(`${stays ? 'is its own still' : 'is nobody’s any more'} where a DELETE is answered with ${status}`, async (t) => {
        const { ask, make, isOwned } = await keeping(
          t,
          (_req, res) => void res.writeHead(status, JSON_TYPE).end(),
        )
        await (await make()).text()
        await (await ask('DELETE')).text()
        assert.equal(await isOwned(), stays)
      })

    it('is only what an answer with a body says', async (t) => {
      for (const status of [304, 412, 404]) {
        const { make, isOwned } = await keeping(
          t,
          () => {},
          (_req, res) => void res.writeHead(status, JSON_TYPE).end(status === 304 ? undefined : MADE),
        )
        await (await make()).text()
        assert.equal(await isOwned(), false, `${status}`)
      }
    })

    it('is what an answer says behind a byte order mark', async (t) => {
      const { make, isOwned } = await keeping(
        t,
        () => {},
        (_req, res) => void res.writeHead(200, JSON_TYPE).end(`\ufeff${MADE}`),
      )
      assert.deepEqual(await (await make()).json(), JSON.parse(MADE))
      assert.equal(await isOwned(), true)
    })

    it('is recorded before its answer is sent, or there is no answer', async (t) => {
      const { make, store, gateway, upstream } = await keeping(t, () => {})
      t.mock.method(store, 'remember', async () => {
        throw new Error('away')
      })
      const answer = await make()
      assert.equal(answer.status, 500)
      const { error, request_id } = await envelopeOf(answer)
      assert.equal(error.code, 'internal_error')
      assert.equal((await gateway.entry(request_id)).outcome, 'failed')
      assert.deepEqual(await gateway.books(), { spent: '0', charges: 0 })
      assert.equal(upstream.requests.length, 1)
    })
  })

  describe('events whose first one names what was made', () => {
    const EVENTS = ['event: made\ndata: {"id":"file_1"}\n\n', 'data: more\n\n']

    it('go on behind it, and are all there', async (t) => {
      const goOn = Promise.withResolvers<void>()
      const { make, isOwned } = await keeping(
        t,
        () => {},
        async (_req, res) => {
          res.writeHead(200, { 'content-type': 'text/event-stream' }).write(EVENTS[0])
          await goOn.promise
          res.end(EVENTS[1])
        },
      )
      const answer = await make()
      assert.equal(await isOwned(), true)
      goOn.resolve()
      assert.equal(await answer.text(), EVENTS.join(''))
    })

    it('may be one only', async (t) => {
      const { make, isOwned } = await keeping(
        t,
        () => {},
        (_req, res) => void res.writeHead(200, { 'content-type': 'text/event-stream' }).end(EVENTS[0]),
      )
      assert.equal(await (await make()).text(), EVENTS[0])
      assert.equal(await isOwned(), true)
    })
  })

  describe('the head of an answer that was read', () => {
    it('describes what is sent, and nothing that the line has compressed', async (t) => {
      const described = {
        'content-digest': 'sha-256=:x:',
        'content-md5': 'x',
        'repr-digest': 'sha-256=:x:',
        etag: '"1"',
        'cache-control': 'no-store',
      }
      const packed = gzipSync(MADE)
      const { make } = await keeping(
        t,
        () => {},
        (_req, res) => {
          const length = { 'content-encoding': 'gzip', 'content-length': packed.length }
          res.writeHead(201, { ...JSON_TYPE, ...described, ...length }).end(packed)
        },
      )
      const answer = await make()
      assert.equal(answer.status, 201)
      for (const name of ['content-digest', 'content-md5', 'repr-digest', 'etag', 'content-encoding'])
        assert.equal(answer.headers.get(name), null, name)
      assert.equal(answer.headers.get('content-length'), String(MADE.length))
      assert.equal(answer.headers.get('cache-control'), 'no-store')
      assert.equal(await answer.text(), MADE)
    })

    it('is that of the line where nothing was read', async (t) => {
      const { ask, make } = await keeping(t, (_req, res) => {
        res.writeHead(200, { ...JSON_TYPE, etag: '"1"', 'content-length': MADE.length }).end(MADE)
      })
      await (await make()).text()
      const answer = await ask('GET')
      assert.deepEqual(
        [answer.headers.get('etag'), answer.headers.get('content-length')],
        ['"1"', String(MADE.length)],
      )
      assert.equal(await answer.text(), MADE)
    })
  })
})
