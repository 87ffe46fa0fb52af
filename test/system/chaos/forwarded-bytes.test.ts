import assert from 'node:assert/strict'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { writeFile } from 'node:fs/promises'
import { request } from 'node:http'
import { join } from 'node:path'
import { describe, it, type TestContext } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { byteUpstream } from '../../support/byte-upstream.ts'
import { type GatewayProcess, startGatewayProcess, temporaryFolder } from '../../support/gateway-process.ts'

/** The whole sizes that are promised take a minute: `FORWARDED_SHARE=1`. */
const SHARE = Number(process.env.FORWARDED_SHARE ?? 0.2)
const DOWNLOAD_BYTES = Math.round(1_000_000_000 * SHARE)
const UPLOAD_BYTES = Math.round(500_000_000 * SHARE)
const MAX_GROWTH_BYTES = 30_000_000

const PIECE = Buffer.alloc(1_000_000, 'x')

/** A gateway in a process of its own whose files are at a line that gives and takes as many bytes as it is asked. */
async function fileGateway(t: TestContext): Promise<GatewayProcess> {
  const upstream = await byteUpstream(t, async (req, res) => {
    if (req.method === 'POST') {
      let bytes = 0
      for await (const chunk of req) bytes += (chunk as Buffer).length
      res.end(String(bytes))
      return
    }
    const size = Number(/size=(\d+)/.exec(req.url ?? '')?.[1])
    res.writeHead(200, { 'content-length': size })
    for (let sent = 0; sent < size; sent += PIECE.length) {
      if (!res.write(PIECE.subarray(0, Math.min(PIECE.length, size - sent)))) await once(res, 'drain')
    }
    res.end()
  })
  const folder = await temporaryFolder()
  const config = join(folder.path, 'gateway.json')
  await writeFile(
    config,
    JSON.stringify({
      accounts: [{ id: 'a', balance: '10' }],
      keys: [{ id: 'k', account: 'a', secret: 'sk-1' }],
      models: [{ id: 'm', kind: 'chat' }],
      lines: [{ id: 'l', provider: 'p', protocol: 'openai', baseUrl: `${upstream.url}/v1`, models: {} }],
      passThrough: [{ path: '/v1/bytes', lines: ['l'], price: { perRequest: '0.01' } }],
    }),
  )
  const gateway = await startGatewayProcess({ GATEWAY_CONFIG: config })
  t.after(async () => {
    await gateway.stop()
    await folder.remove()
  })
  return gateway
}

const authorization = { authorization: 'Bearer sk-1' }

/** Downloads, with a rest behind every 20 MB; answers how much came. */
async function download(gateway: GatewayProcess, size: number): Promise<number> {
  const asking = request(`${gateway.url}/v1/bytes?size=${size}`, { headers: authorization }).end()
  const [response] = await once(asking, 'response')
  let bytes = 0
  let rested = 0
  for await (const chunk of response) {
    bytes += chunk.length
    if (bytes - rested < 20_000_000) continue
    rested = bytes
    await sleep(30)
  }
  return bytes
}

/** Uploads; answers how much the line counted. */
async function upload(gateway: GatewayProcess, size: number): Promise<number> {
  const sending = request(`${gateway.url}/v1/bytes`, {
    method: 'POST',
    headers: { ...authorization, 'content-length': size },
  })
  const answered = once(sending, 'response')
  for (let sent = 0; sent < size; sent += PIECE.length) {
    if (!sending.write(PIECE.subarray(0, Math.min(PIECE.length, size - sent)))) await once(sending, 'drain')
  }
  sending.end()
  const [response] = await answered
  let text = ''
  for await (const chunk of response) text += chunk
  return Number(text)
}

/** By how much a process's resident memory is larger at most, while something runs, than before. */
async function growthOf(pid: number, run: () => Promise<void>): Promise<number> {
  const before = residentBytes(pid)
  let most = before
  const timer = setInterval(() => {
    most = Math.max(most, residentBytes(pid))
  }, 20)
  await run()
  clearInterval(timer)
  return most - before
}

function residentBytes(pid: number): number {
  return 1024 * Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1])
}

const onLinux = { skip: process.platform !== 'linux' && 'reads /proc' }

describe('bytes that are passed on', () => {
  for (const [name, size, pass] of [
    ['a download to a slow reader', DOWNLOAD_BYTES, download],
    ['an upload', UPLOAD_BYTES, upload],
  ] as const) {
    it(`are not held: ${name}, ${size / 1e6} MB`, { ...onLinux, timeout: 180_000 }, async (t) => {
      const gateway = await fileGateway(t)
      let passed = 0
      const growth = await growthOf(gateway.pid, async () => {
        passed = await pass(gateway, size)
      })
      t.diagnostic(`resident memory grew by ${(growth / 1e6).toFixed(1)} MB at most`)
      assert.equal(passed, size)
      assert.ok(growth < MAX_GROWTH_BYTES, `resident memory grew by ${growth} bytes`)
    })
  }
})
