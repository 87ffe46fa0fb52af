import assert from 'node:assert/strict'
import { describe, it, type TestContext } from 'node:test'
import { budgetOf, heldBodyBytes } from '../../../../lib/core/body-budget/index.ts'
import { loadConfig } from '../../../../lib/core/config/index.ts'
import { GatewayError } from '../../../../lib/core/errors/index.ts'
import type { Reference } from '../../../../lib/core/operations/body/references.ts'
import { candidateOf } from '../../../../lib/middleware/forward/forward-options.ts'
import { BatchLines, filesToRun } from '../../../../lib/middleware/forward/kept/batch-lines.ts'
import type { KeptThings } from '../../../../lib/middleware/references/index.ts'
import { LineRegistry } from '../../../../lib/middleware/route/index.ts'
import { startUpstream, type UpstreamScript } from '../../../support/scripted-upstream.ts'
import { callOfKey } from './sent-body.ts'

const LIMIT = 2_000_000
const naming = (id: string, filler = '') => JSON.stringify({ body: { file_id: id, filler } })

/** Judges a file, as its line sends it. */
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
  } as unknown as KeptThings
  const leaving = new AbortController()
  const budget = budgetOf('test', bodyLimitBytes)
  const judge = new BatchLines(file, {
    call: callOfKey(),
    kept,
    bodyLimitBytes,
    budget,
    signal: leaving.signal,
  })
  const run = () => judge.attempt(candidateOf(catalog.lines[0] as never, lines))
  return { upstream, judge, run, lookedUp, places, leaving }
}

const sending =
  (...lines: string[]): UpstreamScript =>
  (res) =>
    void res.end(lines.join('\n'))

describe('what the lines of a file name', () => {
  const many = (count: number, from = 0) => Array.from({ length: count }, (_, i) => `f${from + i}`)

  it('is looked up for 500 things at a time, and each thing once', async (t) => {
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
      assert.deepEqual(await run(), { kind: 'served' })
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

  it('is told by its line and member, and refused', async (t) => {
    const { run, places } = await judging(
      t,
      sending('{}', '', ' \t\r\v\f', '[{"file_id":"foreign"}]', naming('foreign')),
    )
    await assert.rejects(run(), { code: 'not_found' })
    assert.deepEqual(places, ['line 5 of file_1: body.file_id'])
    assert.equal(heldBodyBytes(), 0)
  })

  it('is read from the content of the file, with the line’s key', async (t) => {
    const { run, upstream, judge } = await judging(t, sending(naming('a')), 'files/a b')
    await run()
    const [request] = upstream.requests
    assert.equal(request?.path, '/v1/files/files%2Fa%20b/content')
    assert.deepEqual(
      [request?.method, request?.headers.accept, request?.headers.authorization],
      ['GET', '*/*', 'Bearer up'],
    )
    assert.deepEqual([judge.record?.line, judge.record?.outcome], ['l', 'completed'])
  })
})

describe('lines that cannot be judged', () => {
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

  it('are told by the beginning of the file’s name', async (t) => {
    const { run } = await judging(t, sending(`"${'x'.repeat(2000)}"`), 'f'.repeat(150), 2000)
    await assert.rejects(run(), { message: `Line 1 of the file ${'f'.repeat(100)} is too large` })
  })

  it('are read up to the limit of a body', async (t) => {
    const { run } = await judging(t, sending('{}', `"${'x'.repeat(1998)}"`), 'file_1', 2000)
    assert.deepEqual(await run(), { kind: 'served' })
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
