import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { budgetOf } from '../../../../lib/core/body-budget/index.ts'
import { GatewayError } from '../../../../lib/core/errors/index.ts'
import { OwnList } from '../../../../lib/middleware/forward/kept/own-list.ts'
import { OwnedRequest } from '../../../../lib/middleware/forward/kept/owned-request.ts'
import type { KeptThings } from '../../../../lib/middleware/references/index.ts'
import { callOfKey, type SentRequest, sentRequest, wholeRequest } from './sent-body.ts'

const LIMIT = 10_000
const JSON_TYPE = { 'content-type': 'application/json' }
const LINES = { lines: { candidates: [] } } as never

type Name = { kind: string; id: string }

/** What is asked of the records, which own all but what is `foreign`. */
function records() {
  const log: unknown[][] = []
  const kept = {
    async pin(_call: unknown, names: readonly Name[]) {
      log.push(['pin', ...names.map(({ kind, id }) => `${kind} ${id}`)])
      if (names.some(({ id }) => id === 'foreign')) throw new GatewayError('not_found')
      return []
    },
    ready: async () => void log.push(['ready']),
    remember: async (_call: unknown, line: string, made: unknown) => void log.push(['remember', line, made]),
    forget: async (_call: unknown, { kind, id }: Name) => {
      log.push(['forget', `${kind} ${id}`])
      throw new Error('away')
    },
  }
  return { log, kept: kept as unknown as KeptThings }
}

async function judged(method: string, path: string, req: SentRequest = sentRequest({})) {
  const { kept, log } = records()
  const call = callOfKey()
  const rule = { kept, declared: undefined, bodyLimitBytes: LIMIT, budget: budgetOf('test', LIMIT) }
  const signal = new AbortController().signal
  const owned = await OwnedRequest.judge(call, Object.assign(req, { method }), path, rule, signal)
  return { owned, log, call }
}

describe('what a forwarded request names', () => {
  it('is looked up: in its path and query, and then in its body', async () => {
    const body = wholeRequest(JSON_TYPE, '{"file_id":"f","user":"person"}')
    const { log, call } = await judged('POST', '/batches/b/x?vector_store_id=v&b=?&after=a&before_id=b', body)
    assert.deepEqual(log, [
      ['pin', 'batch b', 'vector_store v'],
      ['pin', 'file f'],
    ])
    assert.equal(call.user, 'person')
    for (const path of ['/models', '/files', '/files?limit=1&after=foreign&page=foreign'])
      assert.deepEqual((await judged('GET', path)).log, [], path)
  })

  it('is refused before the body is read, where it is not the account’s', async () => {
    for (const path of ['/files/foreign', '/models?file_id=foreign', '/models?x=y?&file_id=foreign&z=?']) {
      const req = sentRequest({ ...JSON_TYPE, 'transfer-encoding': 'chunked' })
      await assert.rejects(judged('POST', path, req), { code: 'not_found' }, path)
      assert.equal(req.readableDidRead, false)
    }
    await assert.rejects(judged('POST', '/models', wholeRequest(JSON_TYPE, '{"file_id":"foreign"}')), {
      code: 'not_found',
    })
  })

  it('is no row of other accounts, for an eval', async () => {
    const run = '{"data_source":{"source":{"type":"responses"}}}'
    const asked = (path: string) => judged('POST', path, wholeRequest(JSON_TYPE, run))
    await assert.rejects(asked('/evals/e/runs'), { code: 'unsupported_feature' })
    await asked('/fine_tuning/jobs')
    await asked('/models')
    assert.deepEqual((await judged('POST', '/evals/e/runs', wholeRequest(JSON_TYPE, '[]'))).log, [
      ['pin', 'eval e'],
    ])
  })

  it('needs a store that works, before a line makes something', async () => {
    for (const [method, path, makes] of [
      ['POST', '/files', true],
      ['PUT', '/files', true],
      ['POST', '/threads/runs', true],
      ['PATCH', '/files', false],
      ['GET', '/files', false],
      ['POST', '/files/f', false],
      ['POST', '/models', false],
    ] as const)
      assert.equal((await judged(method, path)).log.flat().includes('ready'), makes, `${method} ${path}`)
  })

  it('may be files that it has run', async () => {
    const { owned } = await judged(
      'POST',
      '/batches',
      wholeRequest(JSON_TYPE, '{"input_file_id":"f","file_id":"g"}'),
    )
    assert.deepEqual([...owned.filesToRun], ['f'])
  })
})

describe('a request for a list', () => {
  it('is a reading one of a collection that belongs to accounts', async () => {
    for (const [method, path, headers, isList] of [
      ['GET', '/files', {}, true],
      ['HEAD', '/files?limit=1', {}, true],
      ['POST', '/files', {}, false],
      ['PUT', '/files', {}, false],
      ['PATCH', '/files', {}, false],
      ['DELETE', '/files', {}, false],
      ['GET', '/files/f', {}, false],
      ['GET', '/audio/voices', {}, false],
      ['GET', '/models', {}, false],
    ] as const) {
      const { owned } = await judged(method, path, sentRequest(headers))
      assert.equal(owned.listOn(LINES) instanceof OwnList, isList, `${method} ${path}`)
    }
    const { owned } = await judged('GET', '/files?limit=none')
    assert.throws(() => owned.listOn({ ...(LINES as object), lines: { candidates: [] } } as never), {
      param: 'limit',
    })
  })
})

describe('an answer that is read before it is sent', () => {
  const rows: [method: string, path: string, reads: boolean, readsEvent: boolean][] = [
    ['POST', '/files', true, true],
    ['PUT', '/files', true, true],
    ['POST', '/threads/runs', true, true],
    ['GET', '/files', false, false],
    ['PATCH', '/files', false, false],
    ['DELETE', '/files', false, false],
    ['GET', '/files/f', false, false],
    ['POST', '/files/f', false, false],
    ['GET', '/batches/b', true, false],
    ['HEAD', '/batches/b', false, false],
    ['HEAD', '/files', false, false],
    ['DELETE', '/batches/b', true, false],
    ['GET', '/batches/b/items', false, false],
    ['PUT', '/batches/b/items', false, false],
    ['POST', '/batches/b/cancel', true, false],
    ['POST', '/uploads/u/complete', true, false],
    ['GET', '/models', false, false],
    ['POST', '/models', false, false],
  ]
  for (const [method, path, reads, readsEvent] of rows)
    it(`is ${reads ? 'one' : 'none'}: ${method} ${path}`, async () => {
      const { owned } = await judged(method, path)
      assert.deepEqual(owned.headers, reads ? { 'accept-encoding': 'identity' } : {})
      for (const type of ['application/json', 'Application/JSON; charset=utf-8', 'application/vnd.a+json'])
        assert.equal(owned.mustRead(type), reads, type)
      for (const type of [
        undefined,
        '',
        'text/json',
        'text/event-stream',
        'application/jsonl',
        'x application/json',
      ])
        assert.equal(owned.mustRead(type), false, type)
      assert.equal(owned.mustReadEvent('text/event-stream; charset=utf-8'), readsEvent)
      for (const type of [undefined, 'application/json']) assert.equal(owned.mustReadEvent(type), false, type)
    })

  it('says what its line keeps', async () => {
    const read = async (method: string, path: string, answer: string, req?: SentRequest) => {
      const { owned, log } = await judged(method, path, req)
      await owned.read('line-7', Buffer.from(answer))
      return log.at(-1)
    }
    const file = { kind: 'file', id: 'out', tokens: 0 }
    assert.deepEqual(await read('POST', '/batches', '{"id":"b","output_file_id":"out"}'), [
      ...['remember', 'line-7'],
      [{ kind: 'batch', id: 'b', tokens: 0 }, file],
    ])
    assert.deepEqual(await read('GET', '/batches/b', '{"id":"b","output_file_id":"out"}'), [
      'remember',
      'line-7',
      [file],
    ])
    for (const answer of ['', 'no JSON', '[]', '"b"'])
      assert.deepEqual(await read('POST', '/batches', answer), ['remember', 'line-7', []], answer)
    assert.deepEqual(await read('POST', '/models', '{"id":"m"}'), ['remember', 'line-7', []])
  })

  it('counts what a conversation was begun with, as about a token for four bytes', async () => {
    for (const [path, text, tokens] of [
      ['/conversations', '{"items":[]}', 3],
      ['/conversations', '{"items": []}', 4],
      ['/threads', '{"items":[]}', 0],
    ] as const) {
      const { owned, log } = await judged('POST', path, wholeRequest(JSON_TYPE, text))
      await owned.read('l', Buffer.from('{"id":"c"}'))
      const [made] = (log.at(-1) ?? [])[2] as { tokens: number }[]
      assert.equal(made?.tokens, tokens, `${path} ${text}`)
    }
  })
})

describe('the end of a request', () => {
  it('ends the record of what it has deleted, and nothing else; a store that is away does no harm', async () => {
    for (const [method, path, forgotten] of [
      ['DELETE', '/files/f', ['forget', 'file f']],
      ['DELETE', '/files/f/?x=y', ['forget', 'file f']],
      ['DELETE', '/files/f/content', undefined],
      ['DELETE', '/files', undefined],
      ['DELETE', '/models/m', undefined],
      ['GET', '/files/f', undefined],
      ['POST', '/files/f', undefined],
    ] as const) {
      const { owned, log } = await judged(method, path)
      await owned.end()
      assert.deepEqual(
        log.find(([what]) => what === 'forget'),
        forgotten,
        `${method} ${path}`,
      )
    }
  })
})
