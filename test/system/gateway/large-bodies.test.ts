import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { existsSync, readFileSync } from 'node:fs'
import { writeFile } from 'node:fs/promises'
import { type ClientRequest, type IncomingMessage, request, type ServerResponse } from 'node:http'
import { join } from 'node:path'
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { before, describe, it } from 'node:test'
import { byteUpstream } from '../../support/byte-upstream.ts'
import { cleaningUp } from '../../support/clean-up.ts'
import { drained } from '../../support/drained.ts'
import {
  chat,
  type GatewayProcess,
  lookUp,
  startGatewayProcess,
  temporaryFolder,
} from '../../support/gateway-process.ts'
import { answerJson, chatAnswer } from '../../support/scripted-upstream.ts'
import { until, untilAsync } from '../../support/until.ts'
import { startVideoUpstream, type VideoUpstream } from '../../support/video-upstream.ts'

const MB = 1_000_000
const KEY = 'sk-acme'
const OTHER_KEY = 'sk-globex'
const ADMIN_TOKEN = 'admin-token-0123456789'
/** The slots of the account: a file and speech take one each, and the content of a video none. */
const SLOTS = 2
/** The line's clocks are shorter than a stalled caller waits. */
const IDLE_MS = 1500

const PIECE_BYTES = 256 * 1024
const CONTENT = randomBytes(200 * MB)
// A body of any type that begins as JSON is read as JSON.
CONTENT[0] = 0xff

/** The ways to the bytes of a line. */
const KINDS = ['a video', 'a video of a task-style line', 'a file', 'speech'] as const
type Kind = (typeof KINDS)[number]

/** The next bytes that a line sends, and how far it is. */
interface Sending {
  readonly bytes: number
  readonly withLength: boolean
  /** How much it sends before it breaks off. */
  readonly breaksOffAt?: number
  sent: number
  closedAt?: number
}

const sendings = new Map<Kind, Sending>()

/** Sends what was asked for, never faster than it is taken. */
async function send(kind: Kind, res: ServerResponse): Promise<void> {
  const sending = sendings.get(kind)
  assert.ok(sending)
  const { bytes, withLength, breaksOffAt = bytes } = sending
  res.on('close', () => {
    sending.closedAt = performance.now()
  })
  res.writeHead(200, { 'content-type': 'video/mp4', ...(withLength && { 'content-length': bytes }) })
  while (sending.sent < breaksOffAt && !res.destroyed) {
    const end = Math.min(sending.sent + PIECE_BYTES, breaksOffAt)
    const isTaken = res.write(CONTENT.subarray(sending.sent, end))
    sending.sent = end
    if (!isTaken) await drained(res)
  }
  if (breaksOffAt < bytes) res.destroy()
  else res.end()
}

describe('large bodies at the assembled gateway', async () => {
  const cleanUp = cleaningUp()
  let gateway: GatewayProcess
  let videos: VideoUpstream
  const paths = new Map<Kind, string>()
  /** The uploads that the line has received. */
  const uploads: { bytes: number; isSame: boolean }[] = []
  /** The image of the next answer, in pieces of base64. */
  let image: string[] = []

  const files = await byteUpstream(cleanUp, async (req, res) => {
    const path = req.url ?? ''
    if (path === '/v1/files') {
      let bytes = 0
      let isSame = true
      for await (const piece of req as AsyncIterable<Buffer>) {
        isSame &&= piece.equals(CONTENT.subarray(bytes, bytes + piece.length))
        bytes += piece.length
      }
      uploads.push({ bytes, isSame })
      return answerJson(res, 200, { id: `file-${uploads.length}`, object: 'file', bytes })
    }
    await req.resume().toArray()
    if (path === '/v1/images/generations') {
      res.writeHead(200, { 'content-type': 'application/json' })
      const pieces = ['{"created":1,"data":[{"b64_json":"', ...image, '"}]}']
      return pipeline(Readable.from(pieces), res).catch(() => {})
    }
    if (path === '/v1/audio/speech') return send('speech', res)
    return path.endsWith('/content') ? send('a file', res) : chatAnswer(res)
  })

  before(async () => {
    videos = await startVideoUpstream()
    cleanUp.after(() => videos.close())
    videos.script = async ({ path }, res) => {
      const kind = path.startsWith('/files/')
        ? 'a video of a task-style line'
        : path.endsWith('/content')
          ? 'a video'
          : undefined
      if (kind) await send(kind, res)
      return kind !== undefined
    }
    const folder = await temporaryFolder()
    cleanUp.after(() => folder.remove())
    const config = join(folder.path, 'gateway.json')
    const shared = { provider: 'p', timeouts: { idleMs: IDLE_MS }, circuit: { minimumCalls: 1000 } }
    const price = { perRequest: '0.01' }
    await writeFile(
      config,
      JSON.stringify({
        lookupsPerMinute: 100_000,
        accounts: [
          { id: 'acme', balance: '100', limits: { concurrency: SLOTS } },
          { id: 'globex', balance: '100' },
        ],
        keys: [
          { id: 'key_acme', account: 'acme', secret: KEY },
          { id: 'key_globex', account: 'globex', secret: OTHER_KEY },
        ],
        models: [
          { id: 'chat-small', kind: 'chat', price: { perRequest: '0.01' } },
          { id: 'image', kind: 'image', price: { perImage: '0.04' } },
          { id: 'film', kind: 'video', price: { perSecond: '0.1' } },
          { id: 'clip', kind: 'video', price: { perSecond: '0.1' } },
        ],
        lines: [
          {
            ...{ ...shared, id: 'files', protocol: 'openai', baseUrl: `${files.url}/v1` },
            models: { 'chat-small': 'u', image: 'u' },
          },
          {
            ...{ ...shared, id: 'videos', protocol: 'openai', baseUrl: `${videos.url}/v1` },
            models: { film: 'u' },
          },
          {
            ...{ ...shared, id: 'tasks', protocol: 'ark', baseUrl: `${videos.url}/api/v3` },
            models: { clip: 'u' },
          },
        ],
        passThrough: ['/v1/files', '/v1/files/*rest', '/v1/audio/*rest'].map((path) => ({
          ...{ path, lines: ['files'], price },
          raw: true,
        })),
      }),
    )
    gateway = await startGatewayProcess({ GATEWAY_CONFIG: config, ADMIN_TOKEN })
    cleanUp.after(() => gateway.stop())
    paths.set('a video', await finished('film', 'completed'))
    paths.set('a video of a task-style line', await finished('clip', 'succeeded'))
    const uploaded = await upload(1000, true)
    assert.equal(uploaded.status, 200, await uploaded.clone().text())
    const { id } = (await uploaded.json()) as { id: string }
    paths.set('a file', `/v1/files/${id}/content`)
    paths.set('speech', '/v1/audio/speech')
  })

  /** Makes a video that its line has finished, and returns the path of its content. */
  async function finished(model: string, status: string): Promise<string> {
    const made = await post('/v1/videos', { model, prompt: 'waves' })
    assert.equal(made.status, 200)
    const { id } = (await made.json()) as { id: string }
    videos.last.status = status
    return `/v1/videos/${id}/content`
  }

  const post = (path: string, body: object, key = KEY) =>
    fetch(gateway.url + path, {
      method: 'POST',
      headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
      body: JSON.stringify(body),
    })

  /** Uploads a file, as one piece or in chunks. */
  const upload = (bytes: number, withLength: boolean) => {
    const content = CONTENT.subarray(0, bytes)
    return fetch(`${gateway.url}/v1/files`, {
      method: 'POST',
      headers: { authorization: `Bearer ${KEY}`, 'content-type': 'application/octet-stream' },
      ...(withLength ? { body: content } : { body: new Blob([content]).stream(), duplex: 'half' }),
    } as RequestInit)
  }

  /** Asks for the bytes of a line. Nothing of them is read yet. */
  async function ask(kind: Kind, what: Omit<Sending, 'sent'>) {
    const sending: Sending = { ...what, sent: 0 }
    sendings.set(kind, sending)
    const isPost = kind === 'speech'
    const asking: ClientRequest = request(gateway.url + paths.get(kind), {
      agent: false,
      method: isPost ? 'POST' : 'GET',
      headers: { authorization: `Bearer ${KEY}`, 'content-type': 'application/json' },
    })
    asking.end(isPost ? JSON.stringify({ model: 'tts', input: 'Hello', voice: 'alloy' }) : undefined)
    const [answer] = (await once(asking, 'response')) as [IncomingMessage]
    assert.equal(answer.statusCode, 200, kind)
    return { sending, asking, answer }
  }

  /** Reads a body to its end. It must be what the line has sent, byte for byte. */
  async function readWhole(answer: IncomingMessage, bytes: number): Promise<void> {
    let at = 0
    for await (const piece of answer as AsyncIterable<Buffer>) {
      assert.ok(piece.equals(CONTENT.subarray(at, at + piece.length)), `the bytes from ${at} on`)
      at += piece.length
    }
    assert.equal(at, bytes)
  }

  /** Waits until a line has sent nothing more for a while, because nobody takes it. */
  async function stalled({ sending }: { sending: Sending }, ms = 500): Promise<void> {
    let seen = -1
    let since = performance.now()
    await until(() => {
      if (sending.sent !== seen) since = performance.now()
      seen = sending.sent
      return performance.now() - since > ms
    }, 'the line waits')
  }

  async function assertOtherIsServed(): Promise<void> {
    const answer = await post('/v1/chat/completions', chat(), OTHER_KEY)
    assert.equal(answer.status, 200)
    await answer.arrayBuffer()
  }

  const outcomeOf = async ({ answer }: { answer: IncomingMessage }) => {
    const { outcome, error_code } = await lookUp(gateway.url, String(answer.headers['x-request-id']), KEY)
    return [outcome, error_code]
  }

  const residentBytes = () =>
    1024 * Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${gateway.pid}/status`, 'utf8'))?.[1])

  it('callers that stop reading pause their lines, take little memory, and give their slots back when they leave', async (t) => {
    const isMeasured = existsSync('/proc/self/status')
    const earlier = isMeasured ? residentBytes() : 0
    const what = { bytes: 200 * MB, withLength: false }
    const callers = await Promise.all(KINDS.map((kind) => ask(kind, what)))
    for (const { answer } of callers) assert.ok(((await once(answer.resume(), 'data')) as [Buffer])[0])
    for (const { answer } of callers) answer.pause()
    await Promise.all(callers.map((caller) => stalled(caller)))
    for (const { sending } of callers) assert.ok(sending.sent < 40 * MB, `${sending.sent} bytes were taken`)
    const grown = isMeasured ? residentBytes() - earlier : 0
    t.diagnostic(`resident memory grew by ${Math.round(grown / MB)} MB`)
    // Each of them would take 200 MB if the lines were not paused.
    assert.ok(grown < 100 * MB, `resident memory grew by ${grown} bytes`)
    await assertOtherIsServed()
    // All slots are taken.
    assert.equal((await post('/v1/chat/completions', chat())).status, 429)
    for (const { answer } of callers) answer.destroy()
    await untilAsync(async () => (await post('/v1/chat/completions', chat())).status === 200, 'free slots')
  })

  for (const kind of KINDS)
    for (const withLength of [true, false])
      it(`${kind} comes whole, ${withLength ? 'with' : 'without'} a length, whatever its size`, async () => {
        for (const bytes of [MB, 20 * MB, ...(withLength ? [200 * MB] : [])]) {
          const { answer } = await ask(kind, { bytes, withLength })
          assert.equal(answer.headers['content-length'], withLength ? String(bytes) : undefined)
          await readWhole(answer, bytes)
        }
        await assertOtherIsServed()
      })

  it('callers that rest for longer than a line may be silent get everything', async () => {
    const bytes = 20 * MB
    const callers = await Promise.all([
      ask('a video', { bytes, withLength: true }),
      ask('a file', { bytes, withLength: false }),
    ])
    await Promise.all(callers.map((caller) => stalled(caller, IDLE_MS + 500)))
    for (const { answer } of callers) await readWhole(answer, bytes)
  })

  for (const kind of KINDS)
    for (const reads of [true, false])
      it(`${kind} ends at its line within a second when a caller leaves that ${reads ? 'reads' : 'has stopped reading'}`, async () => {
        const caller = await ask(kind, { bytes: 200 * MB, withLength: reads })
        const { answer, sending } = caller
        if (reads)
          for (let read = 0; read < 2 * MB; ) read += ((await once(answer, 'data')) as [Buffer])[0].length
        else await stalled(caller)
        const left = performance.now()
        answer.destroy()
        await until(() => sending.closedAt !== undefined, 'the end at the line')
        assert.ok(Number(sending.closedAt) - left < 1000, `${Number(sending.closedAt) - left} ms`)
        assert.deepEqual(await outcomeOf(caller), ['interrupted', 'client_closed_request'])
        await assertOtherIsServed()
      })

  for (const withLength of [true, false])
    it(`a file is uploaded whole, ${withLength ? 'with' : 'without'} a length, whatever its size`, async () => {
      for (const bytes of [MB, 20 * MB, ...(withLength ? [] : [200 * MB])]) {
        const answer = await upload(bytes, withLength)
        assert.equal(answer.status, 200)
        await answer.arrayBuffer()
        assert.deepEqual(uploads.at(-1), { bytes, isSame: true })
      }
    })

  it('an image comes whole, and one beyond the limit of an answer is refused', async () => {
    const askImage = () => post('/v1/images/generations', { model: 'image', prompt: 'waves' })
    for (const bytes of [MB, 20 * MB]) {
      image = [CONTENT.toString('base64', 0, bytes)]
      const answer = await askImage()
      assert.equal(answer.status, 200)
      const { data } = (await answer.json()) as { data: [{ b64_json: string }] }
      assert.ok(data[0].b64_json === image[0], `an image of ${bytes} bytes`)
    }
    // An answer may have 256 MiB.
    image = Array(10).fill(CONTENT.toString('base64', 0, 21 * MB))
    const refused = await askImage()
    assert.equal(refused.status, 502)
    assert.equal(((await refused.json()) as { error: { code: string } }).error.code, 'upstream_error')
    await assertOtherIsServed()
  })

  for (const kind of KINDS)
    for (const withLength of [true, false])
      it(`${kind} that its line breaks off never looks whole, ${withLength ? 'with' : 'without'} a length`, async () => {
        const caller = await ask(kind, { bytes: 20 * MB, withLength, breaksOffAt: 10 * MB })
        await assert.rejects(readWhole(caller.answer, 10 * MB), { code: 'ECONNRESET' })
        assert.equal(caller.answer.complete, false)
        assert.deepEqual(await outcomeOf(caller), ['interrupted', 'upstream_error'])
        await assertOtherIsServed()
      })

  it('leaves nothing behind: no slot, no hold, no connection, and the process of the beginning', async () => {
    const admin = async (path: string) =>
      (await (
        await fetch(`${gateway.url}/admin${path}`, { headers: { authorization: `Bearer ${ADMIN_TOKEN}` } })
      ).json()) as Record<string, unknown>
    const all = await Promise.all(Array.from({ length: SLOTS }, () => post('/v1/chat/completions', chat())))
    assert.deepEqual(
      all.map(({ status }) => status),
      Array(SLOTS).fill(200),
    )
    await untilAsync(async () => (await admin('/accounts/acme')).leased === '0', 'no hold is left')
    assert.deepEqual((await admin('/ledger/check')).violations, [])
    gateway.kill('SIGTERM')
    const { code, stderr } = await gateway.exited
    assert.deepEqual([code, stderr], [0, ''])
    await until(() => files.connections.size === 0, 'no connection is left')
  })
})
