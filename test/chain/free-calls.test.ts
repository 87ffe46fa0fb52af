import assert from 'node:assert/strict'
import { mkdtemp, rm, stat } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { describe, it, type TestContext } from 'node:test'
import { bytesOf, byteUpstream } from '../support/byte-upstream.ts'
import { twoTenants } from './two-tenants.ts'

const JSON_TYPE = { 'content-type': 'application/json' }
const FORM_TYPE = { 'content-type': 'multipart/form-data; boundary=b' }
const FORM =
  '--b\r\nContent-Disposition: form-data; name="purpose"\r\n\r\nbatch\r\n' +
  '--b\r\nContent-Disposition: form-data; name="file"; filename="batch.jsonl"\r\n\r\nx\r\n--b--\r\n'
const PATHS = ['files', 'batches']
const BAD_LINE = '{"body":{"file_id":"file-of-somebody-else"}}\n'

/** A gateway, and a line that keeps files; `status` is what it says of look-ups. */
async function files(t: TestContext, limits: object) {
  const at = { status: 200, lookUps: 0, downloads: 0, creates: 0 }
  const upstream = await byteUpstream(t, async (req, res) => {
    await bytesOf(req)
    if (req.method === 'POST') {
      res.writeHead(200, JSON_TYPE).end(`{"id":"file_${at.creates++}","purpose":"batch"}`)
      return
    }
    if (req.url?.endsWith('/content')) {
      at.downloads++
      res.writeHead(at.status).end(BAD_LINE)
      return
    }
    at.lookUps++
    const id = req.url?.split('/').at(-1)
    res.writeHead(at.status, { ...JSON_TYPE, 'retry-after': '30' }).end(`{"id":"${id}","purpose":"batch"}`)
  })
  const gateway = await twoTenants(t, { upstream: upstream.url, paths: PATHS, limits, perRequest: '0' })
  const upload = async (send = gateway.send): Promise<{ id: string }> => {
    const answer = await send('/v1/files', undefined, { method: 'POST', body: FORM, headers: FORM_TYPE })
    assert.equal(answer.status, 200)
    return (await answer.json()) as { id: string }
  }
  return { gateway, at, upload }
}

describe('look-ups', () => {
  it('count against the limits of their caller, each request to a line as one', async (t) => {
    const { gateway, at, upload } = await files(t, { rpm: 30 })
    for (let i = 0; i < 20; i++) await upload()
    // 20 of 30 are taken, so that the list and nine further requests have room.
    const list = await gateway.send('/v1/files?purpose=nothing')
    assert.deepEqual([list.status, at.lookUps], [429, 10])
    assert.ok(Number(list.headers.get('retry-after')) >= 1)
    assert.equal(((await list.json()) as { error: { code: string } }).error.code, 'rate_limited')
    const again = await gateway.send('/v1/files?purpose=nothing')
    assert.deepEqual([again.status, at.lookUps], [429, 10])
    const other = await upload(gateway.sendOther)
    assert.equal((await gateway.sendOther(`/v1/files/${other.id}`)).status, 200)
  })

  it('end a list if the limit is used up, with the cursor for its continuation', async (t) => {
    const { gateway, at, upload } = await files(t, { rpm: 30 })
    for (let i = 0; i < 20; i++) await upload()
    const list = await gateway.send('/v1/files')
    assert.equal(list.status, 200)
    const { data, has_more: hasMore, last_id: last } = (await list.json()) as Record<string, unknown>
    assert.deepEqual([(data as unknown[]).length, hasMore, at.lookUps], [10, true, 10])
    assert.equal(last, 'file_10')
    assert.equal(list.headers.get('x-ratelimit-remaining-requests'), '0')
  })

  it('do not download a refused file at each attempt, and count each download', async (t) => {
    const { gateway, at, upload } = await files(t, { rpm: 10 })
    const { id } = await upload()
    const batch = { input_file_id: id, endpoint: '/v1/embeddings', completion_window: '24h' }
    for (let i = 0; i < 3; i++) {
      const answer = await gateway.send('/v1/batches', batch)
      const { error } = (await answer.json()) as { error: { code: string; message: string } }
      assert.deepEqual([answer.status, error.code], [404, 'not_found'], `attempt ${i}`)
    }
    assert.equal(at.downloads, 1)
    // One upload, three attempts, and one download.
    const left = (await gateway.send('/v1/files/nothing')).headers.get('x-ratelimit-remaining-requests')
    assert.equal(left, '4')
  })

  it('that are refused by a line prevent neither uploads to it nor look-ups of other paths', async (t) => {
    const { gateway, at, upload } = await files(t, {})
    const { id } = await upload()
    const other = await upload(gateway.sendOther)
    at.status = 429
    for (const path of ['/v1/files', `/v1/files/${id}`, `/v1/files/${id}/content`])
      assert.equal((await gateway.send(path)).status, 429, path)
    const batch = { input_file_id: id, endpoint: '/v1/embeddings', completion_window: '24h' }
    assert.equal((await gateway.send('/v1/batches', batch)).status, 429)
    at.status = 200
    const asked = at.lookUps
    assert.equal((await gateway.sendOther(`/v1/files/${other.id}`)).status, 429)
    assert.equal(at.lookUps, asked, 'look-ups of the path rest')
    await upload()
    await upload(gateway.sendOther)
    const run = { ...batch, input_file_id: undefined }
    assert.equal((await gateway.sendOther('/v1/batches', run)).status, 200)
  })
})

describe('free calls that succeed', () => {
  it('share log entries after a burst, and an entry with its labels is bounded', async (t) => {
    const folder = await mkdtemp(join(tmpdir(), 'free-calls-'))
    t.after(() => rm(folder, { recursive: true, force: true }))
    const file = join(folder, 'gateway.db')
    const upstream = await byteUpstream(t, async (req, res) => {
      await bytesOf(req)
      res.writeHead(200, JSON_TYPE).end('{"input_tokens":7}')
    })
    const options = { upstream: upstream.url, paths: ['files'], balance: '0', databaseUrl: `sqlite:${file}` }
    const gateway = await twoTenants(t, options)
    const tags = (i: number) =>
      Array.from({ length: 16 }, (_, tag) => `${tag}-${'n'.repeat(60)}=${i}-${'v'.repeat(58)}`).join(',')
    const count = (send: typeof gateway.send, i: number) =>
      send(
        '/v1/messages/count_tokens',
        { model: 'claude', messages: [{ role: 'user', content: 'hi' }], metadata: { user_id: `u${i}` } },
        { headers: { 'x-gateway-tags': tags(i), 'x-request-id': `own-${i}` } },
      )
    const begun = performance.now()
    for (let i = 0; i < 240; i += 20)
      for (const answer of await Promise.all(
        Array.from({ length: 20 }, (_, k) => count(gateway.send, i + k)),
      ))
        assert.equal(answer.status, 200, await answer.text())
    const other = await count(gateway.sendOther, 0)
    assert.equal(other.status, 200)
    const most = 101 + Math.ceil((performance.now() - begun) / 200)
    await gateway.gateway.close()

    const db = new DatabaseSync(file, { readOnly: true })
    t.after(() => db.close())
    const rows = db.prepare('select id, account, entry from calls').all() as Record<string, string>[]
    const own = rows.filter(({ account }) => account === 'acme')
    assert.ok(own.length <= most, `${own.length} of ${most}`)
    const stood = own.reduce((sum, { entry = '' }) => sum + 1 + (JSON.parse(entry).repeats ?? 0), 0)
    assert.equal(stood, 240, 'each call is in an entry')
    assert.equal(rows.length - own.length, 1, 'the other tenant has its own entry')
    for (const { id = '', entry = '' } of rows) {
      const labels = db.prepare('select label, id from call_labels where id = ?').all(id) as Record<
        string,
        string
      >[]
      const bytes = labels.reduce((sum, { label = '' }) => sum + Buffer.byteLength(label) + id.length, 0)
      assert.ok(Buffer.byteLength(entry) + bytes <= 16 * 1024, `${Buffer.byteLength(entry)} and ${bytes}`)
    }
    t.diagnostic(`${(await stat(file)).size} bytes, ${own.length} entries`)
  })
})
