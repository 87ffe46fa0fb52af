import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { createRequire } from 'node:module'
import { connect, createServer, type Socket } from 'node:net'
import { join } from 'node:path'
import { describe, it, type TestContext } from 'node:test'
import { gunzipSync } from 'node:zlib'
import { GetObjectCommand, S3Client } from '@aws-sdk/client-s3'
import { newRequestId } from '../../../lib/core/call/index.ts'
import { openDatabase, S3Archive, SqlCallStore, SqlRetention } from '../../../lib/stores/sql/index.ts'
import { entryAt } from '../../contracts/call-store.ts'
import { recordingLogger } from '../../support/app-server.ts'
import { setEnvironment } from '../../support/environment.ts'
import { temporaryFolder } from '../../support/gateway-process.ts'

const DAY_MS = 86_400_000
const NAME = 'calls/2026/11/calls-2026-11-03.jsonl.gz'
const BUCKET = 'archive'
const MEBIBYTE = 1024 * 1024
const sure = async () => {}

interface S3rver {
  run(): Promise<{ port: number }>
  close(): Promise<void>
}
const Rver = createRequire(import.meta.url)('s3rver') as new (options: object) => S3rver

/** A server that speaks S3, with a bucket, and what asks it. */
async function bucket(t: TestContext) {
  const folder = await temporaryFolder()
  t.after(() => folder.remove())
  const configured = { directory: folder.path, configureBuckets: [{ name: BUCKET }], silent: true, port: 0 }
  const server = new Rver({ ...configured, address: '127.0.0.1' })
  const { port } = await server.run()
  t.after(() => server.close())
  setEnvironment(t, { AWS_ACCESS_KEY_ID: 'S3RVER', AWS_SECRET_ACCESS_KEY: 'S3RVER' })
  const endpoint = `http://127.0.0.1:${port}`
  const client = new S3Client({ endpoint, region: 'us-east-1', forcePathStyle: true })
  t.after(() => client.destroy())
  return {
    port,
    archive: new S3Archive({ bucket: BUCKET, prefix: 'gateway/', endpoint }),
    async read(name: string): Promise<Buffer | undefined> {
      try {
        const { Body } = await client.send(new GetObjectCommand({ Bucket: BUCKET, Key: `gateway/${name}` }))
        return Buffer.from((await Body?.transformToByteArray()) ?? [])
      } catch (error) {
        if ((error as Error).name === 'NoSuchKey') return undefined
        throw error
      }
    },
  }
}

async function* chunksOf(bytes: Uint8Array): AsyncGenerator<Uint8Array> {
  for (let at = 0; at < bytes.length; at += 65_536) yield bytes.subarray(at, at + 65_536)
}

describe('an archive in a bucket', () => {
  for (const [size, bytes] of [
    ['of a few bytes', randomBytes(100)],
    ['of several parts', randomBytes(40 * MEBIBYTE)],
  ] as const) {
    it(`keeps an object ${size}, in place of an earlier one`, async (t) => {
      const { archive, read } = await bucket(t)
      await archive.write(NAME, chunksOf(Buffer.from('earlier')), sure)
      await archive.write(NAME, chunksOf(bytes), sure)
      assert.ok((await read(NAME))?.equals(bytes))
    })

    it(`has no object ${size} that is not confirmed, or whose rows cannot be read`, async (t) => {
      const { archive, read } = await bucket(t)
      const lost = new Error('somebody else goes on with it')
      await assert.rejects(
        archive.write(NAME, chunksOf(bytes), () => Promise.reject(lost)),
        lost,
      )
      async function* broken() {
        yield* chunksOf(bytes)
        throw lost
      }
      await assert.rejects(archive.write(NAME, broken(), sure), lost)
      assert.equal(await read(NAME), undefined)
    })
  }

  it('rejects while it is away, and keeps the object afterwards', async (t) => {
    const { port, read } = await bucket(t)
    let away = true
    const sockets = new Set<Socket>()
    const proxy = createServer((socket) => {
      sockets.add(socket.on('error', () => {}))
      if (away) socket.destroy()
      else socket.pipe(connect(port, '127.0.0.1').on('error', () => {})).pipe(socket)
    })
    await new Promise<void>((resolve) => proxy.listen(0, '127.0.0.1', resolve))
    t.after(() => {
      for (const socket of sockets) socket.destroy()
      proxy.close()
    })
    const endpoint = `http://127.0.0.1:${(proxy.address() as { port: number }).port}`
    const archive = new S3Archive({ bucket: BUCKET, prefix: 'gateway/', endpoint })
    await assert.rejects(archive.write(NAME, chunksOf(randomBytes(20 * MEBIBYTE)), sure))
    away = false
    await archive.write(NAME, chunksOf(Buffer.from('whole')), sure)
    assert.equal((await read(NAME))?.toString(), 'whole')
  })

  it('has each day before its calls are deleted', async (t) => {
    const { archive, read } = await bucket(t)
    const folder = await temporaryFolder()
    t.after(() => folder.remove())
    const db = await openDatabase(`sqlite:${join(folder.path, 'gateway.db')}`)
    t.after(() => db.destroy())
    const old = Date.now() - 40 * DAY_MS
    const ids = ['acme', 'globex'].map((account) => ({ account, id: newRequestId(old) }))
    const calls = new SqlCallStore(db)
    await calls.append(ids.map((each) => entryAt(old, each)))
    const nowhere = new S3Archive({ bucket: BUCKET, endpoint: 'http://127.0.0.1:9' })
    const failing = new SqlRetention(db, { archive: nowhere, logger: recordingLogger() })
    t.after(() => failing.close())
    await assert.rejects(failing.run())
    assert.ok(await calls.find(ids[0]?.id ?? ''), 'nothing is deleted that is not exported')
    await failing.close()
    const retention = new SqlRetention(db, { archive, logger: recordingLogger() })
    t.after(() => retention.close())
    const { deleted } = await retention.run()
    assert.equal(deleted.calls, 2)
    assert.equal(await calls.find(ids[0]?.id ?? ''), undefined)
    const day = new Date(old).toISOString().slice(0, 10)
    const object = await read(`calls/${day.slice(0, 4)}/${day.slice(5, 7)}/calls-${day}.jsonl.gz`)
    const lines = gunzipSync(object ?? '')
      .toString()
      .trimEnd()
      .split('\n')
    assert.deepEqual(lines.map((line) => JSON.parse(line).id).sort(), ids.map(({ id }) => id).sort())
  })
})
