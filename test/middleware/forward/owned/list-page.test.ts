import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { GatewayError } from '../../../../lib/core/errors/index.ts'
import type { JsonObject } from '../../../../lib/core/json/index.ts'
import type { ListQuery } from '../../../../lib/middleware/forward/owned/list-query.ts'
import { collectPage, pageBody } from '../../../../lib/middleware/forward/owned/own-list.ts'
import type { UpstreamResource } from '../../../../lib/middleware/references/index.ts'

const MIB = 1024 * 1024
const AT_A_TIME = 8

const resource = (id: string): UpstreamResource => ({
  ...{ kind: 'file', id, account: 'acme', line: 'line-0' },
  ...{ key: null, model: null, tokens: 0, createdAt: 1, expiresAt: null },
})
const idAt = (i: number) => `file-${i}`
const numbered = (from: number, to: number) => Array.from({ length: to - from }, (_, i) => idAt(from + i))

/** So many resources, what each is at its line, and what was asked for. */
function listOf(count: number, itemAt: (i: number) => JsonObject | undefined = (i) => ({ id: idAt(i) })) {
  const resources = numbered(0, count).map(resource)
  const read: [after: string | undefined, limit: number][] = []
  const looked: string[][] = []
  const source = {
    async records(after: UpstreamResource | undefined, limit: number) {
      read.push([after?.id, limit])
      const from = after === undefined ? 0 : resources.indexOf(after) + 1
      return resources.slice(from, from + limit)
    },
    async lookUp(some: readonly UpstreamResource[]) {
      looked.push(some.map(({ id }) => id))
      return { resources: some.map((one) => itemAt(resources.indexOf(one))), refusal: undefined }
    },
  }
  const page = (limit: number, filters: ListQuery['filters'] = [], start?: UpstreamResource) =>
    collectPage(source, { limit, filters } as ListQuery, start)
  return { resources, read, looked, page }
}

const refusal = async (asked: Promise<unknown>): Promise<GatewayError> => {
  const error = await asked.then(
    () => assert.fail('a page'),
    (error: unknown) => error,
  )
  assert.ok(error instanceof GatewayError)
  return error
}

describe('a page of a list', () => {
  it('has as many resources as are asked for, and says whether there are more', async () => {
    for (const count of [0, 1, 7, 8, 9, 15, 16, 17, 24, 25])
      for (const limit of [1, 7, 8, 9, 15, 16, 17, 24]) {
        const { page, looked } = listOf(count)
        const { items, hasMore } = await page(limit)
        const what = `${limit} of ${count}`
        assert.deepEqual(
          items.map(({ id }) => id),
          numbered(0, Math.min(count, limit)),
          what,
        )
        assert.equal(hasMore, count > limit, what)
        assert.deepEqual(looked.flat(), numbered(0, Math.min(count, limit)), `${what}: none in vain`)
        assert.ok(
          looked.every(({ length }) => length <= AT_A_TIME),
          what,
        )
      }
  })

  it('begins behind its start, and goes on behind what was read', async () => {
    const { page, read, resources } = listOf(30)
    const { items } = await page(10, [], resources[4])
    assert.deepEqual(
      items.map(({ id }) => id),
      numbered(5, 15),
    )
    assert.deepEqual(read, [
      [idAt(4), AT_A_TIME + 1],
      [idAt(12), AT_A_TIME + 1],
    ])
  })

  it('leaves out what its line no longer has, and what does not match', async () => {
    const at = (i: number) => (i % 3 === 0 ? undefined : { id: idAt(i), model: i % 3 === 1 ? 'a' : 'b' })
    const all = await listOf(20, at).page(9)
    assert.deepEqual(
      all.items.map(({ id }) => id),
      [1, 2, 4, 5, 7, 8, 10, 11, 13].map(idAt),
    )
    assert.equal(all.hasMore, true)
    const some = await listOf(20, at).page(9, [['model', 'b']])
    assert.deepEqual(
      some.items.map(({ id }) => id),
      [2, 5, 8, 11, 14, 17].map(idAt),
    )
    assert.equal(some.hasMore, false)
  })

  it('has 1 MiB of JSON, and its first resource however large that is', async () => {
    const sized = (bytes: number, letter = 'x') => ({
      id: letter.repeat(bytes / Buffer.byteLength(letter)) + 'x'.repeat(bytes % Buffer.byteLength(letter)),
    })
    const frame = Buffer.byteLength(JSON.stringify(sized(0)))
    const rows: [sizes: number[], inPage: number][] = [
      [[MIB / 2, MIB / 2, 20], 2],
      [[MIB / 2, MIB / 2 + 2, 20], 1],
      [[2 * MIB, 20], 1],
      [[20, 2 * MIB, 20], 1],
    ]
    for (const [sizes, inPage] of rows)
      for (const letter of ['x', 'é']) {
        const { page } = listOf(sizes.length, (i) => sized((sizes[i] as number) - frame, letter))
        const { items, hasMore } = await page(20)
        assert.deepEqual([items.length, hasMore], [inPage, true], `${sizes}`)
      }
    const { page } = listOf(2, () => sized(MIB / 2 - frame))
    assert.equal((await page(20)).hasMore, false)
  })

  it('ends at 200 resources that do not match', async () => {
    const none: ListQuery['filters'] = [
      ['model', 'none'],
      ['purpose', 'p'],
    ]
    for (const count of [199, 200]) {
      const { page, looked } = listOf(count)
      assert.deepEqual(await page(20, none), { items: [], hasMore: false }, 'the list has ended')
      assert.equal(looked.flat().length, count)
    }
    const endless = listOf(300)
    const { code, param, message } = await refusal(endless.page(20, none))
    assert.deepEqual([code, param], ['invalid_request', 'model'])
    assert.match(message, /None of 200 resources matches "model"/)
    assert.equal(endless.looked.flat().length, 200)
    const last = listOf(300, (i) => ({ id: idAt(i), model: i === 199 ? 'none' : 'm', purpose: 'p' }))
    const { items, hasMore } = await last.page(20, none)
    assert.deepEqual([items.map(({ id }) => id), hasMore], [[idAt(199)], true])
    assert.equal(last.looked.flat().length, 200)
  })

  it('ends at 1000 resources that are gone, which count apart from those that do not match', async () => {
    const endless = listOf(1100, () => undefined)
    const { code, message } = await refusal(endless.page(20))
    assert.equal(code, 'upstream_error')
    assert.match(message, /no longer has 1000 resources/)
    assert.equal(endless.looked.flat().length, 1000)
    const found = await listOf(1100, (i) => (i === 999 ? { id: idAt(i) } : undefined)).page(20)
    assert.deepEqual([found.items.length, found.hasMore], [1, true])
    const mixed = listOf(1200, (i) =>
      i < 990 ? undefined : i < 1180 ? { id: idAt(i) } : { id: idAt(i), model: 'm' },
    )
    const few = await mixed.page(3, [['model', 'm']])
    assert.deepEqual(
      few.items.map(({ id }) => id),
      numbered(1180, 1183),
    )
  })

  it('that is empty for both says which filter nothing matched', async () => {
    const { page } = listOf(1300, (i) => (i < 999 ? undefined : { id: idAt(i) }))
    assert.equal((await refusal(page(20, [['purpose', 'x']]))).code, 'invalid_request')
  })
})

describe('the body of a page', () => {
  const items = [{ id: 'a' }, { id: 'b' }]
  const names = [{ name: 'cachedContents/a' }, { name: 'cachedContents/b' }]

  it('has its ends, and where the next page begins if there is one', () => {
    const ends = { object: 'list', data: items, first_id: 'a', last_id: 'b' }
    assert.deepEqual(pageBody('file', { items, hasMore: true }), { ...ends, has_more: true, next_page: 'b' })
    assert.deepEqual(pageBody('file', { items, hasMore: false }), {
      ...ends,
      has_more: false,
      next_page: null,
    })
  })

  it('has no ends where nothing is in it, or nothing has an id', () => {
    const none = { object: 'list', first_id: null, last_id: null }
    for (const hasMore of [true, false])
      assert.deepEqual(pageBody('file', { items: [], hasMore }), {
        ...{ ...none, data: [], has_more: hasMore, next_page: null },
      })
    assert.deepEqual(pageBody('file', { items: names, hasMore: true }), {
      ...{ ...none, data: names, has_more: true, next_page: 'b' },
    })
  })

  it('is Google’s where Google keeps the resources', () => {
    const page = (some: readonly JsonObject[], hasMore: boolean) =>
      pageBody('cached_content', { items: some, hasMore })
    assert.deepEqual(page(names, true), { cachedContents: names, nextPageToken: 'b' })
    assert.deepEqual(page(names, false), { cachedContents: names })
    assert.deepEqual(page([], true), { cachedContents: [] })
  })
})
