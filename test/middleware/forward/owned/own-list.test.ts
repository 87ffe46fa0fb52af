import assert from 'node:assert/strict'
import { describe, it, type TestContext } from 'node:test'
import { loadConfig } from '../../../../lib/core/config/index.ts'
import { candidateOf } from '../../../../lib/middleware/forward/forward-options.ts'
import { lookUp } from '../../../../lib/middleware/forward/owned/own-list.ts'
import { MemoryResourceStore, UpstreamResources } from '../../../../lib/middleware/references/index.ts'
import { LineRegistry } from '../../../../lib/middleware/route/index.ts'
import { envelopeOf } from '../../../support/answer-bodies.ts'
import { forwardGateway, OTHER_KEY } from '../../../support/forward-gateway.ts'
import { KeptFiles, type Page } from '../../../support/kept-files.ts'
import { answerJson, closedPort, startUpstream } from '../../../support/scripted-upstream.ts'
import { until } from '../../../support/until.ts'

describe('a list of what lines keep', () => {
  const ids = ({ data }: Page) => data.map(({ id }) => id)

  it('has all that an account has, over all lines of the rule, among any number of others’', async (t) => {
    const files = await new KeptFiles().start(t)
    const own: string[] = []
    for (let i = 0; i < 12; i++) {
      for (let others = 0; others < 9; others++) await files.make('globex', others % 2 === 0 ? 0 : 1)
      own.unshift(await files.make('acme', i % 3 === 0 ? 0 : 1))
    }
    files.reset()
    const whole = await files.list('acme')
    assert.deepEqual(ids(whole), own)
    assert.deepEqual(new Set(whole.data.map(({ line }) => line)), new Set(['one', 'two']))
    assert.deepEqual(
      [whole.first_id, whole.last_id, whole.has_more, whole.next_page],
      [own[0], own.at(-1), false, null],
    )
    assert.deepEqual(
      files.asked.sort(),
      own.map((id) => `/v1/files/${encodeURIComponent(id)}`).sort(),
      'no line was asked for anything of another account',
    )
    assert.ok(files.one.mostAtOnce <= 8 && files.two.mostAtOnce <= 8)
    assert.deepEqual(ids(await files.list('acme', '?order=asc')), own.toReversed())
  })

  it('can be paged through forwards and backwards, in pages of any size', async (t) => {
    const files = await new KeptFiles().start(t)
    const own: string[] = []
    for (let i = 0; i < 23; i++) {
      own.unshift(await files.make('acme', i % 2 === 0 ? 0 : 1))
      await files.make('globex', i % 2 === 0 ? 0 : 1)
    }
    for (const [cursor, names] of [
      ['after', 'limit'],
      ['after_id', 'limit'],
      ['page', 'limit'],
      ['pageToken', 'pageSize'],
    ] as const) {
      for (const size of cursor === 'after' ? [1, 7, 8, 9, 22, 23, 24] : [9]) {
        const seen: string[] = []
        let query = `?${names}=${size}`
        for (;;) {
          const page = await files.list('acme', query)
          assert.ok(page.data.length <= size && page.data.length > 0)
          seen.push(...ids(page))
          if (!page.has_more) break
          assert.equal(page.next_page, page.last_id)
          query = `?${names}=${size}&${cursor}=${encodeURIComponent(page.last_id ?? '')}`
        }
        assert.deepEqual(seen, own, `${cursor}, ${size}`)
      }
    }
    const at = encodeURIComponent(own[10] as string)
    const before = await files.list('acme', `?limit=4&before_id=${at}`)
    assert.deepEqual([ids(before), before.has_more], [own.slice(6, 10), true])
    const begin = await files.list('acme', `?limit=20&before=${at}`)
    assert.deepEqual([ids(begin), begin.has_more], [own.slice(0, 10), false])
  })

  it('has 20 resources by default, 100 at most, and about 1 MiB', async (t) => {
    const files = await new KeptFiles().start(t)
    for (let i = 0; i < 110; i++) await files.make('acme', 0)
    assert.equal((await files.list('acme')).data.length, 20)
    const most = await files.list('acme', '?limit=10000')
    assert.deepEqual([most.data.length, most.has_more], [100, true])
    const large = 'x'.repeat(300_000)
    for (let i = 0; i < 6; i++) await files.make('globex', i % 2 === 0 ? 0 : 1, { large })
    const page = await files.list('globex')
    assert.deepEqual([page.data.length, page.has_more], [3, true])
    const rest = await files.list('globex', `?after=${encodeURIComponent(page.last_id ?? '')}`)
    assert.deepEqual([rest.data.length, rest.has_more], [3, false])
  })

  it('is empty for an account that has nothing, and no line is asked or paid', async (t) => {
    const files = await new KeptFiles().start(t, { perRequest: '0.01' })
    await files.make('globex', 0)
    files.reset()
    for (const method of ['GET', 'HEAD']) {
      const answer = await files.as('acme', method, '/v1/files')
      assert.equal(answer.status, 200)
      const text = await answer.text()
      if (method === 'GET') assert.deepEqual(JSON.parse(text).data, [])
      else assert.equal(text, '')
    }
    assert.deepEqual(files.asked, [])
    assert.deepEqual(await files.gateway.books(), { spent: '0', charges: 0 })
  })

  it('costs the price of the rule once, however many lines were asked', async (t) => {
    const files = await new KeptFiles().start(t, { perRequest: '0.01' })
    for (let i = 0; i < 20; i++) await files.make('acme', i % 2 === 0 ? 0 : 1)
    const answer = await files.as('acme', 'GET', '/v1/files')
    assert.equal(((await answer.json()) as Page).data.length, 20)
    const entry = await files.gateway.entry(answer.headers.get('x-request-id'))
    assert.equal(entry.billing?.charged, '0.01')
    assert.deepEqual(new Set(entry.routing?.attempts.map(({ line }) => line)), new Set(['line-0', 'line-1']))
    assert.deepEqual(await files.gateway.books(), { spent: '0.01', charges: 1 })
  })

  it('leaves out what is gone from its line, and is refused where a line cannot be asked', async (t) => {
    const files = await new KeptFiles().start(t, { perRequest: '0.01' })
    const [kept, gone, other] = [
      await files.make('acme', 0),
      await files.make('acme', 0),
      await files.make('acme', 1),
    ]
    files.one.files.delete(gone)
    assert.deepEqual(ids(await files.list('acme')), [other, kept])
    for (const [status, code, headers] of [
      [500, 'upstream_error', {}],
      [429, 'upstream_rate_limited', { 'retry-after': '1' }],
    ] as const) {
      files.two.fault = { status, headers }
      const refused = await files.as('acme', 'GET', '/v1/files')
      assert.equal((await envelopeOf(refused)).error.code, code)
    }
    assert.deepEqual(await files.gateway.books(), { spent: '0.01', charges: 1 })
  })

  it('ends at 200 resources in a row that do not match, and says so', async (t) => {
    const files = await new KeptFiles().start(t)
    const batch = await files.make('acme', 0, { purpose: 'batch', metadata: { team: 'red' } })
    for (let i = 0; i < 199; i++) await files.make('acme', 0, { purpose: 'vision' })
    files.reset()
    for (const query of ['?purpose=batch', '?metadata[team]=red', '?purpose=batch&metadata[team]=red'])
      assert.deepEqual(ids(await files.list('acme', query)), [batch], query)
    await files.make('acme', 0, { purpose: 'vision' })
    files.reset()
    const refused = await envelopeOf(await files.as('acme', 'GET', '/v1/files?purpose=batch'))
    assert.deepEqual([refused.error.code, refused.error.param], ['invalid_request', 'purpose'])
    assert.equal(files.asked.length, 200)
    assert.deepEqual(ids(await files.list('acme', '?purpose=batch&order=asc&limit=1')), [batch])
  })

  it('goes on behind what is gone from its line, which is asked for once', async (t) => {
    const files = await new KeptFiles().start(t)
    const kept = await files.make('acme', 0)
    for (let i = 0; i < 250; i++) files.one.files.delete(await files.make('acme', 0))
    const others = await files.make('globex', 0)
    files.reset()
    assert.deepEqual(ids(await files.list('acme')), [kept])
    assert.equal(files.asked.length, 251)
    files.reset()
    assert.deepEqual(ids(await files.list('acme')), [kept])
    assert.deepEqual(files.asked, [`/v1/files/${encodeURIComponent(kept)}`])
    assert.deepEqual(ids(await files.list('globex')), [others])
  })

  it('ends at 1000 resources in a row that are gone, and the next request goes on', async (t) => {
    const files = await new KeptFiles().start(t)
    const kept = await files.make('acme', 0)
    for (let i = 0; i < 1100; i++) files.one.files.delete(await files.make('acme', 0))
    const refused = await envelopeOf(await files.as('acme', 'GET', '/v1/files'))
    assert.equal(refused.error.code, 'upstream_error')
    assert.deepEqual(ids(await files.list('acme')), [kept])
  })

  it('goes on behind a resource that was deleted since, wherever the page began', async (t) => {
    const files = await new KeptFiles().start(t)
    const own: string[] = []
    for (let i = 0; i < 5; i++) own.unshift(await files.make('acme', 0, { id: `file-${i}` }))
    const others = await files.make('globex', 0)
    const page = await files.list('acme', '?limit=2')
    for (const id of ids(page)) {
      const deleted = await files.as('acme', 'DELETE', `/v1/files/${id}`)
      assert.equal(deleted.status, 200)
      assert.equal((await files.as('acme', 'GET', `/v1/files/${id}`)).status, 404)
    }
    const after = encodeURIComponent(page.last_id ?? '')
    assert.deepEqual(ids(await files.list('acme', `?after=${after}`)), own.slice(2))
    assert.deepEqual(ids(await files.list('acme')), own.slice(2))
    const foreign = await files.as('globex', 'GET', `/v1/files?after=${after}`)
    assert.equal((await envelopeOf(foreign)).error.code, 'invalid_request')
    assert.deepEqual(ids(await files.list('globex')), [others])
  })

  it('refuses a query that cannot be read, and cursors of others', async (t) => {
    const files = await new KeptFiles().start(t)
    const others = await files.make('globex', 0)
    await files.make('acme', 0)
    files.reset()
    const rows: [string, number, string | undefined][] = [
      ['?limit=0', 400, 'limit'],
      ['?limit=-1', 400, 'limit'],
      ['?limit=1.5', 400, 'limit'],
      ['?pageSize=many', 400, 'pageSize'],
      ['?order=up', 400, 'order'],
      ['?after=a&before=b', 400, 'before'],
      ['?after=a&after=b', 400, 'after'],
      [`?after=${encodeURIComponent(others)}`, 400, 'after'],
      ['?before=file-none', 400, 'before'],
      ['?vector_store_id=vs_foreign', 404, undefined],
    ]
    for (const [query, status, param] of rows) {
      const refused = await files.as('acme', 'GET', `/v1/files${query}`)
      assert.equal(refused.status, status, query)
      assert.equal((await envelopeOf(refused)).error.param ?? undefined, param, query)
    }
    assert.deepEqual(files.asked, [])
    await files.list('acme', '?beta=true&include[]=a')
    assert.match(files.asked[0] ?? '', /\?beta=true&include%5B%5D=a$/)
  })
})

describe('the list of an account', () => {
  const ids = ({ data }: Page) => data.map(({ id }) => id)

  /** Two lines, and six files of an account, the newest first. */
  async function sixFiles(t: TestContext) {
    const files = await new KeptFiles().start(t, { perRequest: '0.01' })
    const own: string[] = []
    for (let i = 0; i < 6; i++)
      own.unshift(await files.make('acme', i % 2 === 0 ? 0 : 1, { id: `file-${i}` }))
    files.reset()
    return { files, own }
  }

  it('is read from either end, and before or behind a resource, in whatever order', async (t) => {
    const { files, own } = await sixFiles(t)
    const oldest = own.toReversed()
    for (const [query, page, more] of [
      ['', own, false],
      ['?limit=4', own.slice(0, 4), true],
      ['?order=asc', oldest, false],
      ['?order=asc&limit=4', oldest.slice(0, 4), true],
      ['?after=file-3', own.slice(3), false],
      ['?after=file-3&limit=2', own.slice(3, 5), true],
      ['?before=file-1', own.slice(0, 4), false],
      ['?before=file-1&limit=2', own.slice(2, 4), true],
      ['?order=asc&after=file-3', oldest.slice(4), false],
      ['?order=asc&before=file-3&limit=2', oldest.slice(1, 3), true],
      ['?before=file-5', [], false],
      ['?after=file-0', [], false],
    ] as const) {
      const list = await files.list('acme', query)
      assert.deepEqual([ids(list), list.has_more], [page, more], query)
    }
  })

  it('asks each line for its own resources, with what else the query says and the caller’s beta', async (t) => {
    const { files } = await sixFiles(t)
    const answer = await files.gateway.ask('/v1/files?limit=2&beta=true', {
      headers: { 'openai-beta': 'x=v1' },
    })
    assert.equal(answer.status, 200)
    assert.deepEqual(files.asked, ['/v1/files/file-4?beta=true', '/v1/files/file-5?beta=true'])
    for (const { upstream } of [files.one, files.two]) {
      assert.equal(upstream.requests[0]?.headers['openai-beta'], 'x=v1')
      assert.equal(upstream.requests.length, 1)
    }
  })

  it('leaves out what is gone, which it asks for once, and says so of no other', async (t) => {
    const { files, own } = await sixFiles(t)
    files.one.files.delete('file-4')
    files.two.files.delete('file-1')
    const left = own.filter((id) => id !== 'file-4' && id !== 'file-1')
    assert.deepEqual(ids(await files.list('acme')), left)
    files.reset()
    for (const limit of [1, 3, 4, 20])
      assert.deepEqual(ids(await files.list('acme', `?limit=${limit}`)), left.slice(0, limit))
    assert.ok(!files.asked.some((path) => /file-[14]$/.test(path)))
    assert.equal((await files.list('acme', '?after=file-4')).data.length, 3, 'it is a place all the same')
  })

  it('has each resource once where several of the first are known to be gone', async (t) => {
    const { files, own } = await sixFiles(t)
    for (let i = 6; i < 16; i++) own.unshift(await files.make('acme', 0, { id: `file-${i}` }))
    for (const id of ['file-15', 'file-13', 'file-12']) files.one.files.delete(id)
    const left = own.filter((id) => files.one.files.has(id) || files.two.files.has(id))
    for (let i = 0; i < 2; i++) assert.deepEqual(ids(await files.list('acme')), left)
  })

  it('is asked of a store in the one order or the other, whatever a page stands before', async (t) => {
    const { files } = await sixFiles(t)
    const asked: string[] = []
    const list = files.store.list.bind(files.store)
    t.mock.method(files.store, 'list', (...given: Parameters<typeof list>) => {
      asked.push(given[2].order)
      return list(...given)
    })
    for (const query of ['', '?before=file-1', '?order=asc', '?order=asc&before=file-3'])
      await files.list('acme', query)
    assert.deepEqual(asked, ['newest', 'oldest', 'oldest', 'newest'])
  })

  it('is refused where one line fails, and costs nothing', async (t) => {
    const { files } = await sixFiles(t)
    files.two.fault = { status: 500 }
    const refused = await files.as('acme', 'GET', '/v1/files')
    assert.equal((await envelopeOf(refused)).error.code, 'upstream_error')
    assert.deepEqual(await files.gateway.books(), { spent: '0', charges: 0 })
  })

  it('is for one line where the query names a resource of it', async (t) => {
    const { files } = await sixFiles(t)
    const record = {
      kind: 'vector_store',
      id: 'vs',
      key: null,
      model: null,
      tokens: 0,
      createdAt: 1,
      expiresAt: null,
    }
    await files.store.remember([{ ...record, account: 'acme', line: 'line-1' }])
    assert.deepEqual(ids(await files.list('acme', '?vector_store_id=vs')), ['file-5', 'file-3', 'file-1'])
    assert.equal(files.one.upstream.requests.length, 0)
  })

  it('is not waited for, nor paid, by a caller who leaves', async (t) => {
    const { files } = await sixFiles(t)
    files.two.upstream.script = () => {}
    const leaving = new AbortController()
    const asked = files.gateway.ask('/v1/files', { signal: leaving.signal }).catch(() => {})
    await until(() => files.two.upstream.requests.length === 3)
    const [call] = files.gateway.openCalls
    leaving.abort()
    await asked
    await until(() => files.two.upstream.requests.every(({ cut }) => cut), 'the end of what was asked', 5000)
    const { status, outcome } = await files.gateway.entry(call?.id ?? '')
    assert.deepEqual([status, outcome], [499, 'interrupted'])
    assert.deepEqual(await files.gateway.books(), { spent: '0', charges: 0 })
  })

  it('makes the files known that its batches have written', async (t) => {
    const upstream = await startUpstream((res, { method, path }) => {
      const batch = { id: 'batch_1', output_file_id: method === 'POST' ? null : 'file_out' }
      answerJson(res, 200, path.includes('/batches') ? batch : { id: 'file_out' })
    })
    t.after(() => upstream.close())
    const resources = new UpstreamResources({ store: new MemoryResourceStore() })
    t.after(() => resources.close())
    const rules = ['/v1/batches', '/v1/files/*rest'].map((path) => ({ path, lines: ['line-0'] }))
    const gateway = await forwardGateway(t, { lines: [upstream.url], rules, resources })
    await gateway.ask('/v1/batches', { method: 'POST' })
    const status = async (path: string) => (await gateway.ask(path)).status
    assert.equal(await status('/v1/files/file_out'), 404)
    assert.equal(await status('/v1/batches'), 200)
    assert.equal(await status('/v1/files/file_out'), 200)
  })
})

const VOICES = '/v1/audio/voices'

describe('voices, where the rule does not say that they are kept', () => {
  it('are listed by the line, and only used, changed and deleted by the account that made them', async (t) => {
    const listed = { voices: [{ id: 'amber' }, { id: 'basil' }] }
    const upstream = await startUpstream((res, { method }) =>
      answerJson(res, 200, method === 'GET' ? listed : { id: 'voice_1', object: 'audio.voice' }),
    )
    t.after(() => upstream.close())
    const rules = [{ path: '/v1/audio/*rest', lines: ['line-0'] }]
    const resources = new UpstreamResources({ store: new MemoryResourceStore() })
    const gateway = await forwardGateway(t, { lines: [upstream.url], rules, resources })
    const status = async (method: string, path: string, key?: string) => {
      const headers = key === undefined ? {} : { authorization: `Bearer ${key}` }
      const answer = await gateway.ask(path, { method, headers })
      await answer.arrayBuffer()
      return answer.status
    }

    assert.deepEqual(await (await gateway.ask(VOICES)).json(), listed)
    assert.equal(await status('POST', VOICES), 200)
    upstream.requests.length = 0
    for (const method of ['GET', 'POST', 'PATCH', 'DELETE'])
      assert.equal(await status(method, `${VOICES}/voice_1`, OTHER_KEY), 404, method)
    assert.equal(await status('DELETE', '/v1/audio/Voices/voice_1/', OTHER_KEY), 404)
    assert.equal(upstream.requests.length, 0, 'the line was not asked')
    assert.equal(await status('DELETE', `${VOICES}/voice_1`), 200)
  })
})

/** A line that answers each path as a test says, and what is asked of it. */
async function asking(t: TestContext, at?: string) {
  const upstream = await startUpstream((res, { path }) => {
    const [, status = '200', text = '{}'] = decodeURIComponent(path).split('|')
    if (status === 'never') return
    res.writeHead(Number(status), { 'content-type': 'application/json', 'retry-after': '7' }).end(text)
  })
  t.after(() => upstream.close())
  const { catalog } = loadConfig({
    models: [{ id: 'm', kind: 'chat' }],
    lines: [{ id: 'l', provider: 'p', protocol: 'openai', baseUrl: `${at ?? upstream.url}/v1`, models: {} }],
  })
  const lines = new LineRegistry()
  t.after(() => lines.close())
  const leaving = new AbortController()
  const lookUps = (...answers: string[]) => {
    const requests = answers.map(
      (answer) => ({ method: 'GET', path: `/x${encodeURIComponent(`|${answer}`)}` }) as const,
    )
    const [line] = catalog.lines
    assert.ok(line)
    return lookUp(candidateOf(line, lines), requests, leaving.signal)
  }
  return { upstream, leaving, lookUps }
}

const FAILED = { kind: 'failed', committed: false, elsewhere: false }

describe('resources that a line is asked for at once', () => {
  it('are what it says of each, in their order, and nothing for those that it does not have', async (t) => {
    const { lookUps, upstream } = await asking(t)
    const end = await lookUps(
      '200|{"id":"a"}',
      '404|{}',
      '200|{"id":"b"}',
      '405|',
      '410|no',
      '200|{"id":"c"}',
    )
    assert.equal(end.kind, 'served')
    assert.deepEqual(end.found, [{ id: 'a' }, undefined, { id: 'b' }, undefined, undefined, { id: 'c' }])
    assert.deepEqual([end.record?.outcome, end.record?.line], ['completed', 'l'])
    assert.equal(upstream.requests.length, 6)
    const alone = await lookUps('404|{}')
    assert.deepEqual([alone.kind, alone.found, alone.record?.outcome], ['served', [undefined], 'completed'])
  })

  it('are none where none is asked for', async (t) => {
    const { lookUps } = await asking(t)
    assert.deepEqual(await lookUps(), { kind: 'served', found: [], record: undefined })
  })

  for (const [answer, code, lineFault] of [
    ['500|{}', 'upstream_error', true],
    ['401|{}', 'upstream_error', true],
    ['400|{}', 'invalid_request', false],
    ['429|{}', 'upstream_rate_limited', false],
    ['200|[]', 'upstream_error', true],
    ['200|no JSON', 'upstream_error', true],
    ['200|7', 'upstream_error', true],
  ] as const)
    it(`fail as the first of them that fails: ${answer}`, async (t) => {
      const { lookUps } = await asking(t)
      for (const answers of [[answer], ['200|{"id":"a"}', answer, '501|{}'], ['404|{}', answer]]) {
        const end = await lookUps(...answers)
        assert.ok(end.kind === 'failed')
        const { failure, record, found: _, ...rest } = end
        assert.equal(failure.code, code)
        assert.deepEqual(rest, { ...FAILED, lineFault })
        assert.equal(record?.outcome, code)
      }
    })

  it('fail where the line cannot be reached', async (t) => {
    const { lookUps } = await asking(t, `http://127.0.0.1:${await closedPort()}`)
    const end = await lookUps('200|{}')
    assert.deepEqual([end.kind, end.record?.outcome], ['failed', 'upstream_error'])
  })

  it('are given up once no caller waits for them', async (t) => {
    const { lookUps, leaving, upstream } = await asking(t)
    upstream.script = (res, { path }) => {
      if (path.includes('never')) leaving.abort()
      else answerJson(res, 200, {})
    }
    assert.equal((await lookUps('200|{}', 'never')).kind, 'abandoned')
  })
})
