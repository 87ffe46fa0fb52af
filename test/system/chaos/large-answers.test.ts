import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { existsSync, readFileSync } from 'node:fs'
import { writeFile } from 'node:fs/promises'
import type { ServerResponse } from 'node:http'
import { join } from 'node:path'
import { pipeline } from 'node:stream/promises'
import { before, describe, it } from 'node:test'
import { rawClient } from '../../support/app-server.ts'
import { cleaningUp } from '../../support/clean-up.ts'
import {
  type GatewayProcess,
  lookUp,
  startGatewayProcess,
  temporaryFolder,
} from '../../support/gateway-process.ts'
import { type ScriptedUpstream, startUpstream } from '../../support/scripted-upstream.ts'
import { until } from '../../support/until.ts'

const MB = 1024 * 1024
const PIECE = Buffer.alloc(64 * 1024, 'QUJD')
const HEAD = '{"created":1,"data":[{"b64_json":"'
const TAIL = '"}],"usage":{"input_tokens":7,"output_tokens":4160,"total_tokens":4167}}'
const KEY = 'sk-images'

/** Sends an image of so many bytes in base64, never faster than it is taken; without its tail where it breaks off. */
async function sendImage(res: ServerResponse, bytes: number, breaksOff = false): Promise<void> {
  res.writeHead(200, { 'content-type': 'application/json' })
  await pipeline(piecesOf(bytes, breaksOff), res).catch(() => {})
}

function* piecesOf(bytes: number, breaksOff: boolean): Iterable<Buffer | string> {
  yield HEAD
  for (let sent = 0; sent < bytes; sent += PIECE.length) yield PIECE
  if (breaksOff) throw new Error('the line breaks off')
  yield TAIL
}

const hashOf = (bytes: number) => {
  const hash = createHash('sha256').update(HEAD)
  for (let sent = 0; sent < bytes; sent += PIECE.length) hash.update(PIECE)
  return hash.update(TAIL).digest('hex')
}

/** The most memory that a process has had. */
function peakOf({ pid }: GatewayProcess): number {
  const kilobytes = /^VmHWM:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]
  return Number(kilobytes) * 1024
}

describe('an answer of many megabytes', () => {
  const upstreams: ScriptedUpstream[] = []
  let gateway: GatewayProcess
  const cleanUp = cleaningUp()
  before(async () => {
    for (let i = 0; i < 2; i++) {
      const upstream = await startUpstream()
      cleanUp.after(() => upstream.close())
      upstreams.push(upstream)
    }
    const folder = await temporaryFolder()
    cleanUp.after(() => folder.remove())
    const config = {
      accounts: [{ id: 'acme', balance: '100' }],
      keys: [{ id: 'key', account: 'acme', secret: KEY }],
      models: [{ id: 'image', kind: 'image', price: { perImage: '0.04' } }],
      lines: upstreams.map(({ url }, i) => ({
        ...{ id: `line-${i}`, provider: 'p', protocol: 'openai', baseUrl: `${url}/v1`, priority: i },
        models: { image: 'upstream' },
      })),
    }
    await writeFile(join(folder.path, 'config.json'), JSON.stringify(config))
    gateway = await startGatewayProcess({
      GATEWAY_CONFIG: join(folder.path, 'config.json'),
      DATABASE_URL: `sqlite:${join(folder.path, 'test.db')}`,
    })
    cleanUp.after(() => gateway.stop())
  })

  const body = JSON.stringify({ model: 'image', prompt: 'a wall' })
  const ask = (headers: Record<string, string> = {}) =>
    fetch(`${gateway.url}/v1/images/generations`, {
      method: 'POST',
      body,
      headers: { authorization: `Bearer ${KEY}`, 'content-type': 'application/json', ...headers },
    })
  const scriptOf = (index: number, script: ScriptedUpstream['script']) => {
    const upstream = upstreams[index]
    assert.ok(upstream)
    upstream.script = script
    return upstream
  }

  it('passes unchanged, is charged, and is held in memory once', {
    skip: !existsSync('/proc/self/status'),
  }, async () => {
    const size = 96 * MB
    scriptOf(0, (res) => sendImage(res, 64 * 1024))
    await (await ask()).arrayBuffer()
    const before = peakOf(gateway)
    scriptOf(0, (res) => sendImage(res, size))
    const response = await ask()
    const hash = createHash('sha256')
    for await (const chunk of response.body ?? []) hash.update(chunk as Uint8Array)
    assert.equal(hash.digest('hex'), hashOf(size))
    const entry = await lookUp(gateway.url, response.headers.get('x-request-id'), KEY)
    assert.equal(entry.usage?.images, 1)
    assert.equal(entry.billing?.charged, '0.04')
    const grown = peakOf(gateway) - before
    assert.ok(grown < 1.6 * size, `${Math.round(grown / MB)} MB more for an answer of ${size / MB} MB`)
  })

  it('that breaks off goes to the next line, and the caller sees nothing of it', async () => {
    const size = 8 * MB
    const broken = scriptOf(0, (res) => sendImage(res, 4 * MB, true))
    scriptOf(1, (res) => sendImage(res, size))
    const asked = broken.requests.length
    const response = await ask()
    const got = Buffer.from(await response.arrayBuffer())
    assert.equal(createHash('sha256').update(got).digest('hex'), hashOf(size))
    assert.equal(broken.requests.length, asked + 1)
    const { routing, billing } = await lookUp(gateway.url, response.headers.get('x-request-id'), KEY)
    assert.deepEqual(
      routing?.attempts.map(({ outcome }) => outcome),
      ['upstream_error', 'completed'],
    )
    assert.equal(billing?.charged, '0.04')
  })

  it('is kept for its Idempotency-Key as it was sent', async () => {
    const upstream = scriptOf(0, (res) => sendImage(res, MB))
    const key = { 'idempotency-key': 'one-image' }
    const response = await ask(key)
    const text = await response.text()
    assert.equal(text.length, HEAD.length + MB + TAIL.length)
    const id = response.headers.get('x-request-id')
    assert.equal((await lookUp(gateway.url, id, KEY)).response_body, text)
    const asked = upstream.requests.length
    const again = await ask(key)
    assert.equal(again.status, 409)
    assert.equal(again.headers.get('x-original-request-id'), id)
    assert.equal(upstream.requests.length, asked)
  })

  it('is given up when the caller leaves, who pays for the image that was asked for', async () => {
    const upstream = scriptOf(0, async (res) => {
      res.writeHead(200, { 'content-type': 'application/json' }).write(HEAD)
      res.write(PIECE)
    })
    const asked = upstream.requests.length
    const client = rawClient(
      gateway.port,
      `POST /v1/images/generations HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${KEY}\r\nX-Request-Id: leaver\r\nContent-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n${body}`,
    )
    await until(() => upstream.requests.length > asked, 'the request at the upstream')
    client.socket.destroy()
    await until(() => upstream.requests.at(-1)?.cut === true, 'the cut connection')
    const list = async () => {
      const response = await fetch(`${gateway.url}/v1/calls?code=client_closed_request`, {
        headers: { authorization: `Bearer ${KEY}` },
      })
      return (await response.json()) as {
        data: { usage: { images: number } | null; billing: { charged: string | null } }[]
      }
    }
    let calls = await list()
    for (let tries = 0; tries < 200 && calls.data.length === 0; tries++) calls = await list()
    assert.deepEqual([calls.data[0]?.usage?.images, calls.data[0]?.billing.charged], [1, '0.04'])
  })
})
