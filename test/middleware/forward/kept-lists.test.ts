import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { envelopeOf } from '../../support/answer-bodies.ts'
import { KeptFiles, type Page } from '../../support/kept-files.ts'

const ids = ({ data }: Page) => data.map(({ id }) => id)

describe('a list of what lines keep', () => {
  it('has all that an account has, over all lines of the rule, among any number of others’', async (t) => {
    const files = await new KeptFiles().start(t)
    const own: string[] = []
    for (let i = 0; i < 12; i++) {
      for (let others = 0; others < 30; others++) await files.make('globex', others % 2 === 0 ? 0 : 1)
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
      for (const size of [1, 7, 8, 9, 22, 23, 24]) {
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

  it('has 20 things by default, 100 at most, and about 1 MiB', async (t) => {
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

  it('is empty for whoever has nothing, and no line is asked or paid', async (t) => {
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

  it('ends at 200 things in a row that do not match, and says so', async (t) => {
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

  it('ends at 1000 things in a row that are gone, and the next request goes on', async (t) => {
    const files = await new KeptFiles().start(t)
    const kept = await files.make('acme', 0)
    for (let i = 0; i < 1100; i++) files.one.files.delete(await files.make('acme', 0))
    const refused = await envelopeOf(await files.as('acme', 'GET', '/v1/files'))
    assert.equal(refused.error.code, 'upstream_error')
    assert.deepEqual(ids(await files.list('acme')), [kept])
  })

  it('goes on behind a thing that was deleted since, wherever the page began', async (t) => {
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
