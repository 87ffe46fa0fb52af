import assert from 'node:assert/strict'
import type { ServerResponse } from 'node:http'
import { describe, it, type TestContext } from 'node:test'
import { gzipSync } from 'node:zlib'
import { loadConfig } from '../../../../lib/core/config/index.ts'
import { GatewayError } from '../../../../lib/core/errors/index.ts'
import { budgetOf, heldBodyBytes } from '../../../../lib/core/memory/index.ts'
import type { Reference } from '../../../../lib/core/operations/body/references.ts'
import { candidateOf } from '../../../../lib/middleware/forward/forward-options.ts'
import { BatchLines, filesToRun } from '../../../../lib/middleware/forward/owned/batch-files.ts'
import { MemoryResourceStore, UpstreamResources } from '../../../../lib/middleware/references/index.ts'
import { LineRegistry } from '../../../../lib/middleware/route/index.ts'
import { envelopeOf } from '../../../support/answer-bodies.ts'
import { forwardGateway, OTHER_KEY } from '../../../support/forward-gateway.ts'
import { answerJson, startUpstream, type UpstreamScript } from '../../../support/scripted-upstream.ts'
import { until } from '../../../support/until.ts'
import { callOfKey } from '../support/sent-body.ts'

const PATHS = ['/v1/files', '/v1/batches', '/v1/batch/jobs']

const FORM_HEAD = [
  ...['--b', 'Content-Disposition: form-data; name="purpose"', '', 'batch'],
  ...['--b', 'Content-Disposition: form-data; name="file"; filename="lines.jsonl"', '', ''],
].join('\r\n')
const FORM_END = '\r\n--b--\r\n'

/** How an upstream sends a file. */
type Send = (res: ServerResponse, content: Buffer) => void

const whole: Send = (res, content) => void res.writeHead(200).end(content)

/** One line that keeps files, for two accounts. A file's bytes are what was uploaded. */
async function batching(t: TestContext, send: Send = whole, bodyLimitBytes = 16_000_000) {
  const contents = new Map<string, Buffer>()
  const upstream = await startUpstream((res, { method, path, raw }) => {
    const id = /\/files\/(.+)\/content$/.exec(path)?.[1]
    if (id !== undefined) return send(res, contents.get(id) ?? Buffer.alloc(0))
    if (method !== 'POST') return answerJson(res, 404, {})
    const made = `${path.endsWith('/files') ? 'file' : 'batch'}_${contents.size}`
    contents.set(made, raw.subarray(FORM_HEAD.length, raw.length - FORM_END.length))
    answerJson(res, 200, { id: made })
  })
  t.after(() => upstream.close())
  const resources = new UpstreamResources({ store: new MemoryResourceStore() })
  t.after(() => resources.close())
  const rules = PATHS.map((path) => ({ path, lines: ['line-0'], price: { perRequest: '0.01' } }))
  const gateway = await forwardGateway(t, {
    lines: [upstream.url],
    rules,
    resources,
    bodies: { bodyLimitBytes },
  })
  const as = (key: 'acme' | 'globex', path: string, body: string | Buffer, type = 'application/json') =>
    gateway.ask(path, {
      method: 'POST',
      headers: { 'content-type': type, ...(key === 'globex' && { authorization: `Bearer ${OTHER_KEY}` }) },
      body,
    })
  const upload = async (key: 'acme' | 'globex', content: string | Buffer): Promise<string> => {
    const form = Buffer.concat([Buffer.from(FORM_HEAD), Buffer.from(content), Buffer.from(FORM_END)])
    const answer = await as(key, '/v1/files', form, 'multipart/form-data; boundary=b')
    return ((await answer.json()) as { id: string }).id
  }
  const run = (file: string, path = '/v1/batches') =>
    as('acme', path, JSON.stringify({ input_file_id: file }))
  const created = () =>
    upstream.requests.filter(({ method, path }) => method === 'POST' && /batch/.test(path))
  return { upstream, gateway, as, upload, run, created }
}

/** A line of a batch file. */
const lineOf = (body: unknown): string =>
  JSON.stringify({ custom_id: 'one', method: 'POST', url: '/v1/responses', body })

const PLAIN = lineOf({ model: 'm', input: 'Hello' })

/** How a line can name a file. */
const NAMING: readonly (readonly [string, (file: string) => unknown])[] = [
  ['a part', (file_id) => ({ input: [{ role: 'user', content: [{ type: 'input_file', file_id }] }] })],
  ['a tool', (file) => ({ tools: [{ type: 'code_interpreter', container: { file_ids: [file] } }] })],
  ['a response before', (previous_response_id) => ({ previous_response_id })],
]

/** Where in a file the line stands. */
const PLACES: readonly (readonly [string, (line: string) => string | Buffer])[] = [
  ['alone, without an end', (line) => line],
  ['first', (line) => `${line}\n${PLAIN}\n`],
  ['last, without an end', (line) => `${PLAIN}\n${PLAIN}\n${line}`],
  ['behind empty lines', (line) => `\n\r\n  \n${line}\r\n`],
  ['in the middle of many', (line) => `${`${PLAIN}\n`.repeat(2000)}${line}\n${`${PLAIN}\n`.repeat(2000)}`],
  ['behind a large one', (line) => `${lineOf({ input: 'x'.repeat(400_000) })}\n${line}\n`],
]

describe('the lines of a file that a batch runs', () => {
  for (const [what, naming] of NAMING) {
    // The place does not depend on how the file is named.
    for (const [place, written] of naming === NAMING[0]?.[1] ? PLACES : PLACES.slice(0, 1)) {
      it(`name nothing of another account: ${what}, ${place}`, async (t) => {
        const { gateway, upload, run, created } = await batching(t)
        const others = await upload('globex', 'secret')
        const file = await upload('acme', written(lineOf(naming(others))))

        const answer = await run(file)
        assert.equal(answer.status, 404)
        const { error } = await envelopeOf(answer)
        assert.equal(error.code, 'not_found')
        assert.match(JSON.stringify(error), /line \d+ of file_/)
        assert.equal(created().length, 0)
        assert.deepEqual(await gateway.books(), { spent: '0.01', charges: 2 })
      })
    }
  }

  it('may name what the account owns', async (t) => {
    const { upload, run, created } = await batching(t)
    const own = await upload('acme', 'mine')
    const lines = NAMING.slice(0, 2).map(([, naming]) => lineOf(naming(own)))
    const answer = await run(await upload('acme', `${lines.join('\n')}\n${PLAIN}`))
    assert.equal(answer.status, 200)
    assert.equal(created().length, 1)
  })

  it('are read in whatever pieces and coding they come', async (t) => {
    const sends: readonly Send[] = [
      (res, content) => {
        res.writeHead(200)
        for (const byte of content) res.write(Buffer.from([byte]))
        res.end()
      },
      (res, content) => void res.writeHead(200, { 'content-encoding': 'gzip' }).end(gzipSync(content)),
    ]
    for (const send of sends) {
      const { upload, run, created } = await batching(t, send)
      const others = await upload('globex', 'secret')
      const lines = ['é🙂', 'x'].map((input) => lineOf({ input }))
      assert.equal((await run(await upload('acme', lines.join('\n')))).status, 200)
      const naming = lineOf({ input: [{ type: 'input_file', file_id: others }] })
      assert.equal((await run(await upload('acme', [...lines, naming].join('\n')))).status, 404)
      assert.equal(created().length, 1)
    }
  })

  it('are read on every path, for each file that is named', async (t) => {
    const { as, upload, created } = await batching(t)
    const others = await upload('globex', 'secret')
    const plain = await upload('acme', PLAIN)
    const naming = await upload('acme', lineOf({ input: [{ type: 'input_file', file_id: others }] }))
    const create = (body: object) => as('acme', '/v1/batch/jobs', JSON.stringify(body))
    assert.equal((await create({ input_files: [plain] })).status, 200)
    assert.equal((await create({ input_files: [plain, naming] })).status, 404)
    assert.equal((await create({ input_files: [others] })).status, 404)
    for (const name of ['inputFileId', 'Input-File-Ids'])
      assert.equal((await create({ batch: { [name]: naming } })).status, 404, name)
    assert.equal(created().length, 1)
  })

  it('may be many, and each as large as a body', async (t) => {
    const { upload, run, created } = await batching(t, whole, 2000)
    const others = await upload('globex', 'secret')
    const many = `${lineOf({ input: 'x'.repeat(1800) })}\n`.repeat(1200)
    assert.equal((await run(await upload('acme', many))).status, 200)
    const naming = lineOf({ input: [{ type: 'input_file', file_id: others }] })
    assert.equal((await run(await upload('acme', many + naming))).status, 404)
    const answer = await run(await upload('acme', `${PLAIN}\n${lineOf({ input: 'x'.repeat(200_000) })}\n`))
    assert.equal(answer.status, 400)
    assert.match((await envelopeOf(answer)).error.message, /^Line 2 of the file file_\d+ is too large/)
    assert.equal(created().length, 1)
  })

  it('are refused where one cannot be read as an upstream may read it', async (t) => {
    const { upload, run, created } = await batching(t, whole, 1_000_000)
    for (const line of [
      '{"body":{"file_id":"a","file_id":"b"}}',
      '{"body":',
      Buffer.from([0x7b, 0x22, 0xff, 0x22, 0x7d]),
      `{"body":${'['.repeat(500)}${']'.repeat(500)}}`,
      'x'.repeat(1_000_001),
    ]) {
      const file = await upload('acme', Buffer.concat([Buffer.from(`${PLAIN}\n`), Buffer.from(line)]))
      const answer = await run(file)
      assert.equal(answer.status, 400)
      const { error } = await envelopeOf(answer)
      assert.equal(error.code, 'invalid_request')
      assert.match(error.message, /^Line 2 of the file file_/)
    }
    assert.equal(created().length, 0)
  })

  it('are not run where the line does not return them whole', async (t) => {
    const cut: Send = (res, bytes) =>
      void res.writeHead(200, { 'content-length': bytes.length + 1 }).write(bytes, () => res.destroy())
    const outcomes: readonly (readonly [Send, number])[] = [
      [(res) => answerJson(res, 404, { error: { message: 'gone' } }), 404],
      [(res) => answerJson(res, 500, { error: { message: 'broken' } }), 502],
      [cut, 502],
      [(res) => void res.destroy(), 502],
    ]
    for (const [send, status] of outcomes) {
      const { gateway, upload, run, created } = await batching(t, send)
      const file = await upload('acme', `${PLAIN}\n`)
      assert.equal((await run(file)).status, status)
      assert.equal(created().length, 0)
      assert.deepEqual(await gateway.books(), { spent: '0.01', charges: 1 })
    }
  })

  it('of one key take no more memory than its bodies may, and none of another account', async (t) => {
    const stalled: ServerResponse[] = []
    const { upload, run, created, as } = await batching(
      t,
      (res, content) => {
        if (content.length < 1000) return whole(res, content)
        res.writeHead(200).write(content)
        stalled.push(res)
      },
      1_000_000,
    )
    const begun = await upload('acme', `{"body":"${'x'.repeat(900_000)}`)
    const running = [run(begun), run(begun)]
    await until(() => heldBodyBytes() > 1_700_000)
    const refused = await run(begun)
    assert.equal(refused.status, 429)
    assert.equal((await envelopeOf(refused)).error.code, 'concurrency_limited')
    const own = JSON.stringify({ input_file_id: await upload('globex', PLAIN) })
    assert.equal((await as('globex', '/v1/batches', own)).status, 200)
    for (const res of stalled) res.end('"}')
    assert.deepEqual(
      (await Promise.all(running)).map(({ status }) => status),
      [200, 200],
    )
    assert.equal(created().length, 3)
    assert.equal(heldBodyBytes(), 0)
  })

  it('are looked up before many of them are in memory', async (t) => {
    const { upload, run, created, upstream } = await batching(t)
    const others = await upload('globex', 'secret')
    const naming = lineOf({ input: ['x'.repeat(100_000), { type: 'input_file', file_id: others }] })
    const file = await upload('acme', `${naming}\n`.repeat(20))
    upstream.script = (res, request, index) => {
      assert.match(request.path, /content$/, `${index}`)
      // The refusal does not wait for the end, which never comes.
      res.writeHead(200).write(`${naming}\n`)
      for (let i = 0; i < 2000; i++) res.write(`${lineOf({ file_id: `file_${i}` })}\n`)
    }
    assert.equal((await run(file)).status, 404)
    assert.equal(created().length, 0)
  })

  it('are no longer read once the caller has left', async (t) => {
    let sending: ServerResponse | undefined
    const { gateway, upload, created, upstream } = await batching(t, (res, content) => {
      res.writeHead(200).write(content)
      sending = res
    })
    const file = await upload('acme', `${PLAIN}\n`)
    const leaving = new AbortController()
    const asked = gateway.ask('/v1/batches', {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ input_file_id: file }),
      signal: leaving.signal,
    })
    await until(() => sending !== undefined)
    leaving.abort()
    await asked.catch(() => {})
    await until(() => upstream.requests.at(-1)?.cut === true)
    assert.equal(created().length, 0)
    assert.deepEqual(await gateway.books(), { spent: '0.01', charges: 1 })
  })
})

const LIMIT = 2_000_000
const naming = (id: string, filler = '') => JSON.stringify({ body: { file_id: id, filler } })

/** Checks a file, as its line sends it. */
async function judging(t: TestContext, script: UpstreamScript, file = 'file_1', bodyLimitBytes = LIMIT) {
  const upstream = await startUpstream(script)
  t.after(() => upstream.close())
  const { catalog } = loadConfig({
    models: [{ id: 'm', kind: 'chat' }],
    lines: [
      { id: 'l', provider: 'p', protocol: 'openai', baseUrl: `${upstream.url}/v1`, apiKey: 'up', models: {} },
    ],
  })
  const lines = new LineRegistry()
  t.after(() => lines.close())
  const lookedUp: string[][] = []
  const places: string[] = []
  const kept = {
    async pin(_call: unknown, names: readonly Reference[]) {
      lookedUp.push(names.map(({ id }) => id))
      places.push(...names.map(({ place }) => place()))
      if (names.some(({ id }) => id === 'foreign')) throw new GatewayError('not_found')
    },
  } as unknown as UpstreamResources
  const leaving = new AbortController()
  const budget = budgetOf('test', bodyLimitBytes)
  const check = new BatchLines(file, {
    call: callOfKey(),
    resources: kept,
    bodyLimitBytes,
    budget,
    signal: leaving.signal,
  })
  const run = () => check.readAt(candidateOf(catalog.lines[0] as never, lines))
  return { upstream, check, run, lookedUp, places, leaving }
}

const sending =
  (...lines: string[]): UpstreamScript =>
  (res) =>
    void res.end(lines.join('\n'))

describe('a resource that the lines of a file name', () => {
  const many = (count: number, from = 0) => Array.from({ length: count }, (_, i) => `f${from + i}`)

  it('is looked up for 500 resources at a time, and each resource once', async (t) => {
    for (const [ids, groups] of [
      [many(499), [499]],
      [many(500), [500]],
      [many(501), [500, 1]],
      [
        [...many(500), ...many(500), ...many(3, 499)],
        [500, 2],
      ],
      [['a', 'a', 'b', 'a'], [2]],
      [[], []],
    ] as const) {
      const { run, lookedUp } = await judging(t, sending(...ids.map((id) => naming(id))))
      assert.equal((await run()).kind, 'served')
      assert.deepEqual(
        lookedUp.map(({ length }) => length),
        groups,
        `${ids.length}`,
      )
    }
  })

  it('is looked up before the lines that name it take more than 1 MiB', async (t) => {
    const frame = naming('x').length
    const half = 'x'.repeat(512 * 1024 - frame)
    for (const [lines, groups] of [
      [
        [naming('a', half), naming('b', half), naming('c')],
        [['a', 'b'], ['c']],
      ],
      [[naming('a', half.slice(1)), naming('b', half), naming('c')], [['a', 'b', 'c']]],
      [[naming('a', half), naming('a', half), naming('b', half.slice(1)), naming('c')], [['a', 'b', 'c']]],
      [
        [naming('a', half), naming('b', half), naming('c', half.slice(1)), naming('d', half), naming('e')],
        [
          ['a', 'b'],
          ['c', 'd', 'e'],
        ],
      ],
    ] as const) {
      const { run, lookedUp } = await judging(t, sending(...lines))
      await run()
      assert.deepEqual(lookedUp, groups)
    }
  })

  it('is named by its line and member, and refused', async (t) => {
    const { run, places } = await judging(
      t,
      sending('{}', '', ' \t\r\v\f', '[{"file_id":"foreign"}]', naming('foreign')),
    )
    await assert.rejects(run(), { code: 'not_found' })
    assert.deepEqual(places, ['line 5 of file_1: body.file_id'])
    assert.equal(heldBodyBytes(), 0)
  })

  it('is read from the content of the file, with the line’s key', async (t) => {
    const { run, upstream } = await judging(t, sending(naming('a')), 'files/a b')
    const { record } = await run()
    const [request] = upstream.requests
    assert.equal(request?.path, '/v1/files/files%2Fa%20b/content')
    assert.deepEqual(
      [request?.method, request?.headers.accept, request?.headers.authorization],
      ['GET', '*/*', 'Bearer up'],
    )
    assert.deepEqual([record?.line, record?.outcome], ['l', 'completed'])
  })
})

describe('lines that cannot be checked', () => {
  for (const [what, line, told] of [
    ['not JSON', '{"a":', /^Line 2 of the file file_1 cannot be read\. /],
    ['a member twice', '{"a":1,"a":2}', /^Line 2 of the file file_1 cannot be read\. .*twice/],
    ['too large', `"${'x'.repeat(2000)}"`, /^Line 2 of the file file_1 is too large$/],
  ] as const)
    it(`are refused: ${what}`, async (t) => {
      const { run } = await judging(t, sending(naming('a'), line), 'file_1', 2000)
      await assert.rejects(run(), (error: GatewayError) => {
        assert.equal(error.code, 'invalid_request')
        assert.match(error.message, told)
        return true
      })
      assert.equal(heldBodyBytes(), 0)
    })

  it('are recognised by the beginning of the file’s name', async (t) => {
    const { run } = await judging(t, sending(`"${'x'.repeat(2000)}"`), 'f'.repeat(150), 2000)
    await assert.rejects(run(), { message: `Line 1 of the file ${'f'.repeat(100)} is too large` })
  })

  it('are read up to the limit of a body', async (t) => {
    const { run } = await judging(t, sending('{}', `"${'x'.repeat(1998)}"`), 'file_1', 2000)
    assert.equal((await run()).kind, 'served')
  })

  it('are none where the line does not send the file', async (t) => {
    for (const [status, code, lineFault] of [
      [404, 'not_found', false],
      [400, 'invalid_request', false],
      [500, 'upstream_error', true],
      [206, 'upstream_error', true],
    ] as const) {
      const { run, lookedUp } = await judging(
        t,
        (res) => void res.writeHead(status).end('{"error":{"message":"x"}}'),
      )
      const end = await run()
      assert.equal(end.kind, 'failed', `${status}`)
      if (end.kind !== 'failed') continue
      assert.deepEqual([end.committed, end.elsewhere], [false, false])
      if (status !== 206) assert.deepEqual([end.failure.code, end.lineFault], [code, lineFault], `${status}`)
      assert.deepEqual(lookedUp, [])
    }
    const long = await judging(t, (res) => void res.writeHead(500).write('x'.repeat(70_000)))
    assert.equal((await long.run()).kind, 'failed', 'its words are read up to a length')
  })

  it('are read no further once the call must end', async (t) => {
    const reason = new GatewayError('key_disabled')
    const before = await judging(t, sending(naming('a')))
    before.leaving.abort(reason)
    await assert.rejects(before.run(), reason)
    assert.equal(before.upstream.requests.length, 0)
    const { run, leaving } = await judging(t, (res) => {
      res.write(`${naming('a')}\n`)
      setImmediate(() => leaving.abort(reason))
    })
    await assert.rejects(run(), reason)
    assert.equal(heldBodyBytes(), 0)
  })
})

describe('the files that a request has run', () => {
  it('are those that it names as its input', () => {
    const named = (kind: string, place: string) => ({ kind, id: place, place: () => place })
    const run = [
      'input_file_id',
      'batch.input_file_id',
      'inputFileId',
      'input-files',
      'INPUT_FILE_IDS',
      'input_file',
    ]
    const others = ['file_id', 'my_input_file_id', 'input_file_id_x', 'input_files[0].id', 'output_file_id']
    const files = filesToRun([...run, ...others].map((place) => named('file', place)))
    assert.deepEqual([...files], run)
    assert.equal(filesToRun([named('batch', 'input_file_id')]).size, 0)
  })
})
