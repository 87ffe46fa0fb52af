import assert from 'node:assert/strict'
import { describe, it, type TestContext } from 'node:test'
import { KeptThings, MemoryKeptStore } from '../../../../lib/middleware/references/index.ts'
import { envelopeOf } from '../../../support/answer-bodies.ts'
import { forwardGateway } from '../../../support/forward-gateway.ts'
import { KeptFiles, type Page } from '../../../support/kept-files.ts'
import { answerJson, startUpstream } from '../../../support/scripted-upstream.ts'
import { until } from '../../../support/until.ts'

const ids = ({ data }: Page) => data.map(({ id }) => id)

/** Two lines, and six files of an account, the newest first. */
async function sixFiles(t: TestContext) {
  const files = await new KeptFiles().start(t, { perRequest: '0.01' })
  const own: string[] = []
  for (let i = 0; i < 6; i++) own.unshift(await files.make('acme', i % 2 === 0 ? 0 : 1, { id: `file-${i}` }))
  files.reset()
  return { files, own }
}

describe('the list of an account', () => {
  it('is read from either end, and before or behind a thing, in whatever order', async (t) => {
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

  it('asks each line for its own things, with what else the query says and the caller’s beta', async (t) => {
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

  it('has each thing once where several of the first are known to be gone', async (t) => {
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

  it('is for one line where the query names a thing of it', async (t) => {
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
    await until(() => files.two.upstream.requests.every(({ cut }) => cut), 'the end of what was asked', 2000)
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
    const kept = new KeptThings({ store: new MemoryKeptStore() })
    t.after(() => kept.close())
    const rules = ['/v1/batches', '/v1/files/*rest'].map((path) => ({ path, lines: ['line-0'] }))
    const gateway = await forwardGateway(t, { lines: [upstream.url], rules, kept })
    await gateway.ask('/v1/batches', { method: 'POST' })
    const status = async (path: string) => (await gateway.ask(path)).status
    assert.equal(await status('/v1/files/file_out'), 404)
    assert.equal(await status('/v1/batches'), 200)
    assert.equal(await status('/v1/files/file_out'), 200)
  })
})
