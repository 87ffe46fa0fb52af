import assert from 'node:assert/strict'
import type { ServerResponse } from 'node:http'
import { describe, it, type TestContext } from 'node:test'
import { brotliCompressSync, gzipSync } from 'node:zlib'
import type { JsonObject } from '../../../../lib/core/json/index.ts'
import {
  filesNamedBy,
  idOf,
  namesFiles,
  resourcesMadeBy,
} from '../../../../lib/middleware/forward/owned/made-resources.ts'
import { UpstreamResources } from '../../../../lib/middleware/references/index.ts'
import { byteUpstream } from '../../../support/byte-upstream.ts'
import { forwardGateway, OTHER_KEY } from '../../../support/forward-gateway.ts'

const file = (id: string) => ({ kind: 'file', id })

/** The files that the answer about a resource names, which were made of that resource. */
const YIELDED: readonly (readonly [kind: string, answer: JsonObject, files: readonly string[]])[] = [
  ['batch', { output_file_id: 'out', error_file_id: 'err' }, ['out', 'err']],
  ['batch', { output_file_id: 'out', error_file_id: null }, ['out']],
  ['batch', { output_file_id: null, error_file_id: 'err' }, ['err']],
  ['batch', { output_file_id: { id: 'out' } }, ['out']],
  [
    'batch',
    { output_file_id: 7, error_file_id: {}, input_file_id: 'in', file: 'f', result_files: ['f'] },
    [],
  ],
  ['fine_tuning_job', { result_files: ['a', 'b'], training_file: 't' }, ['a', 'b']],
  ['fine_tuning_job', { result_files: [] }, []],
  ['fine_tuning_job', { result_files: ['a', null, 7, { id: 'b' }] }, ['a']],
  ['fine_tuning_job', { result_files: 'a' }, ['a']],
  ['upload', { file: { id: 'f', object: 'file' } }, ['f']],
  ['upload', { file: 'f' }, ['f']],
  ['upload', { file: null }, []],
  ['upload', {}, []],
]

describe('the list of things that an answer says were made of a resource', () => {
  for (const [kind, answer, files] of YIELDED)
    it(`is the files of a ${kind}: ${JSON.stringify(answer)}`, () => {
      assert.deepEqual(filesNamedBy(answer, kind), files.map(file))
      const id = { id: 'resource' }
      assert.deepEqual(resourcesMadeBy({ ...answer, ...id }, kind), [{ kind, ...id }, ...files.map(file)])
      assert.deepEqual(resourcesMadeBy(answer, kind), files.map(file), 'no id')
    })

  it('is nothing of other kinds', () => {
    const names = { output_file_id: 'o', error_file_id: 'e', result_files: ['r'], file: { id: 'f' } }
    for (const kind of ['', 'file', 'response', 'message_batch', 'toString', 'constructor']) {
      assert.equal(namesFiles(kind), false, kind)
      assert.deepEqual(filesNamedBy(names, kind), [], kind)
    }
    for (const [kind] of YIELDED) assert.equal(namesFiles(kind), true, kind)
  })

  it('is nothing of what is no object', () => {
    for (const answer of [undefined, null, 'batch', 7, true, [{ id: 'a', output_file_id: 'o' }]]) {
      assert.deepEqual(filesNamedBy(answer, 'batch'), [], String(answer))
      assert.deepEqual(resourcesMadeBy(answer, 'batch'), [], String(answer))
    }
  })
})

describe('the resource that the answer to a create names', () => {
  it('is the new resource, under its id or, at Google, its name', () => {
    const rows: [answer: JsonObject, id: string | undefined][] = [
      [{ id: 'a' }, 'a'],
      [{ id: 'a', name: 'cachedContents/b' }, 'a'],
      [{ name: 'cachedContents/b' }, 'cachedContents/b'],
      [{ name: 'plain' }, undefined],
      [{ name: '/b' }, undefined],
      [{ name: 'my file/b' }, undefined],
      [{ name: 7 }, undefined],
      [{ id: 7, name: 'files/b' }, 'files/b'],
      [{}, undefined],
    ]
    for (const [answer, id] of rows) {
      assert.equal(idOf(answer), id, JSON.stringify(answer))
      const made = id === undefined ? [] : [{ kind: 'vector_store', id }]
      assert.deepEqual(resourcesMadeBy(answer, 'vector_store'), made, JSON.stringify(answer))
    }
  })

  it('is the thread, where a run of a new one is made, and not the run', () => {
    const run = { id: 'run_1', thread_id: 'thread_1' }
    assert.deepEqual(resourcesMadeBy(run, 'thread'), [{ kind: 'thread', id: 'thread_1' }])
    assert.deepEqual(resourcesMadeBy({ id: 'thread_1' }, 'thread'), [{ kind: 'thread', id: 'thread_1' }])
    assert.deepEqual(resourcesMadeBy({ name: 'threads/t' }, 'thread'), [])
    assert.deepEqual(resourcesMadeBy(run, 'session'), [{ kind: 'session', id: 'run_1' }])
  })

  it('ends when the line says that it deletes it, for a file', () => {
    const made = (kind: string, expiresAt: unknown) =>
      resourcesMadeBy({ id: 'a', expires_at: expiresAt }, kind)
    assert.deepEqual(made('file', 1_700_000_000), [{ ...file('a'), expiresAt: 1_700_000_000_000 }])
    for (const never of [null, undefined, 0, '1700000000', -1])
      assert.deepEqual(made('file', never), [file('a')], String(never))
    for (const kind of ['upload', 'vector_store', 'batch'])
      assert.deepEqual(
        made(kind, 1_700_000_000),
        [{ kind, id: 'a' }],
        'its own end is not that of the resource',
      )
  })
})

const FIRST = 'event: thread.created\ndata: {"id":"thread_é","object":"thread"}\n\n'
const PING = ': ping\n\n'
const NAMELESS = FIRST.slice(FIRST.indexOf('data:'))
const MARK = '\ufeff'
/** The bytes before the first event. */
const BEGINS: Record<string, string> = {
  'behind comments': PING + PING,
  'behind a byte order mark': MARK,
}
const REST =
  'event: thread.run.created\ndata: {"id":"run_1","thread_id":"thread_é"}\n\nevent: done\ndata: [DONE]\n\n'

/** Makes a thread by a run whose events are sent like this. */
async function runs(t: TestContext, send: (res: ServerResponse) => void, encoding = 'identity') {
  const upstream = await byteUpstream(t, ({ method }, res) => {
    if (method === 'GET') return void res.end('{}')
    res.writeHead(200, { 'content-type': 'text/event-stream; charset=utf-8', 'content-encoding': encoding })
    send(res)
  })
  const resources = new UpstreamResources()
  t.after(() => resources.close())
  const price = { perRequest: '0.01' }
  const rules = [{ path: '/v1/threads/*rest', lines: ['line-0'], price }]
  const gateway = await forwardGateway(t, { lines: [upstream.url], rules, resources })
  const headers = { 'content-type': 'application/json' }
  const answer = await gateway.ask('/v1/threads/runs', { method: 'POST', body: '{"stream":true}', headers })
  return { gateway, answer }
}

const THREAD = `/v1/threads/${encodeURIComponent('thread_é')}`

describe('a resource whose creation is reported by a stream of events', () => {
  it('belongs to its account, and the events come as they were sent', async (t) => {
    const sent: [string, (res: ServerResponse) => void][] = [
      ['at once', (res) => res.end(FIRST + REST)],
      ['one event only', (res) => res.end(FIRST)],
      ['without an empty line', (res) => res.end(FIRST.trimEnd())],
      ['behind comments', (res) => res.end(PING + PING + FIRST + REST)],
      ['behind a byte order mark', (res) => res.end(MARK + FIRST + REST)],
      ['behind a mark, without a name', (res) => res.end(MARK + NAMELESS)],
      ['with other line ends', (res) => res.end((FIRST + REST).replaceAll('\n', '\r\n'))],
      [
        'byte by byte',
        async (res) => {
          for (const byte of Buffer.from(FIRST + REST)) {
            res.write(Buffer.from([byte]))
            await new Promise(setImmediate)
          }
          res.end()
        },
      ],
    ]
    for (const [how, send] of sent) {
      const { gateway, answer } = await runs(t, send)
      const text = Buffer.from(await answer.arrayBuffer()).toString()
      const begin = BEGINS[how] ?? ''
      const whole = how === 'behind a mark, without a name' ? MARK + NAMELESS : begin + FIRST + REST
      assert.ok(whole.startsWith(text.replaceAll('\r', '')), how)
      assert.ok(text.includes('"object":"thread"}'), how)
      assert.equal(text.includes('[DONE]'), !/only|without/.test(how), how)
      assert.equal((await gateway.ask(THREAD)).status, 200, how)
      const headers = { authorization: `Bearer ${OTHER_KEY}` }
      assert.equal((await gateway.ask(THREAD, { headers })).status, 404, how)
    }
  })

  it('belongs to its account where the line compresses unasked', async (t) => {
    for (const [encoding, compress] of [
      ['gzip', gzipSync],
      ['br', brotliCompressSync],
    ] as const) {
      const { gateway, answer } = await runs(t, (res) => res.end(compress(FIRST + REST)), encoding)
      assert.equal(await answer.text(), FIRST + REST, encoding)
      assert.equal((await gateway.ask(THREAD)).status, 200, encoding)
    }
  })

  it('is known before its first event is sent, and the stream goes on behind it', async (t) => {
    let line: ServerResponse | undefined
    const { gateway, answer } = await runs(t, (res) => {
      line = res
      res.write(FIRST)
    })
    const reader = answer.body?.getReader()
    assert.equal(Buffer.from((await reader?.read())?.value ?? []).toString(), FIRST)
    assert.equal((await gateway.ask(THREAD)).status, 200)
    line?.end(REST)
    assert.equal(Buffer.from((await reader?.read())?.value ?? []).toString(), REST)
    assert.equal((await reader?.read())?.done, true)
  })

  it('ends as a failure of the line where the stream breaks before it', async (t) => {
    const { gateway, answer } = await runs(t, (res) => {
      res.write('event: thread.created\n')
      setImmediate(() => res.destroy())
    })
    assert.equal(answer.status, 502)
    assert.deepEqual(await gateway.books(), { spent: '0', charges: 0 })
  })
})
