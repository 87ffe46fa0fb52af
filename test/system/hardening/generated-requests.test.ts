import assert from 'node:assert/strict'
import { Agent, request } from 'node:http'
import { before, describe, it } from 'node:test'
import fc from 'fast-check'
import { checkEnvelope } from '../../middleware/read-request/refusal.ts'
import { cleaningUp } from '../../support/clean-up.ts'
import { startGateway, type TestGateway } from '../../support/gateway.ts'
import {
  chatAnswer,
  chatEvents,
  messageAnswer,
  messageEvents,
  type ScriptedUpstream,
  startUpstream,
  stream,
} from '../../support/scripted-upstream.ts'
import { type Sent, sent } from './generated-requests.ts'

// Requests that Node itself refuses before a middleware runs (malformed HTTP, headers over 16 KiB, an Expect other than
// 100-continue, CONNECT) have no envelope and are no part of this.

const RUNS = 3000
const AT_ONCE = 16
/** No request may take longer, on a busy machine too. */
const HANG_MS = 20_000

describe('bad input', () => {
  let upstream: ScriptedUpstream
  let gateway: TestGateway
  const agent = new Agent({ keepAlive: true, maxSockets: AT_ONCE })
  const cleanUp = cleaningUp()
  before(async () => {
    upstream = await startUpstream((res, { path: asked, json }) => {
      const isMessage = asked.endsWith('/messages')
      if (json.stream === true) return stream(res, (isMessage ? messageEvents : chatEvents)(['Hi']))
      if (isMessage) messageAnswer(res)
      else chatAnswer(res)
    })
    cleanUp.after(() => upstream.close())
    gateway = await startGateway({
      lines: [{ url: upstream.url }, { url: upstream.url, protocol: 'anthropic' }],
      config: { bodyLimitBytes: 4096 },
    })
    cleanUp.after(() => gateway.close())
    cleanUp.after(() => agent.destroy())
  })

  it(`${RUNS} generated requests: never a 500, never a hang, always an answer in the envelope`, async () => {
    const statuses = new Map<number, number>()
    const cases = fc.sample(sent, { numRuns: RUNS, seed: Number(process.env.SEED ?? 20260101) })
    let next = 0
    const worker = async (): Promise<void> => {
      for (let one = cases[next++]; one; one = cases[next++]) {
        try {
          const status = await exchange(gateway.url, agent, one)
          statuses.set(status, (statuses.get(status) ?? 0) + 1)
        } catch (error) {
          const { body: sentBody, ...head } = one
          throw new Error(`${JSON.stringify(head)}\n${sentBody.toString('latin1')}`, { cause: error })
        }
      }
    }
    await Promise.all(Array.from({ length: AT_ONCE }, worker))
    assert.deepEqual(
      gateway.logged.filter(({ level }) => level === 'error'),
      [],
    )
    // The cases reach every room: some are answered, others refused for each kind of reason.
    for (const status of [200, 400, 401, 404, 413])
      assert.ok((statuses.get(status) ?? 0) > 10, `few ${status}s`)
    assert.equal(gateway.openCalls.size, 0)
  })
})

/** Sends one request and checks its answer; resolves with the status. */
function exchange(
  url: string,
  agent: Agent,
  { method, path: asked, headers: given, body: bytes, chunked }: Sent,
) {
  return new Promise<number>((resolve, reject) => {
    const size = chunked ? { 'transfer-encoding': 'chunked' } : { 'content-length': bytes.length }
    const req = request(url, { method, path: asked, agent, headers: { ...given, ...size } }, (res) => {
      const chunks: Buffer[] = []
      res.on('data', (chunk: Buffer) => chunks.push(chunk))
      res.on('error', reject)
      res.on('end', () => {
        try {
          checkAnswer(method, res.statusCode ?? 0, res.headers, Buffer.concat(chunks).toString())
          resolve(res.statusCode ?? 0)
        } catch (error) {
          reject(error)
        }
      })
    })
    req.setTimeout(HANG_MS, () => req.destroy(new Error('no answer: a hang')))
    req.on('error', reject)
    req.end(bytes)
  })
}

function checkAnswer(method: string, status: number, head: Record<string, unknown>, text: string): void {
  assert.notEqual(status, 500, text)
  assert.ok([200, 304, 400, 401, 402, 403, 404, 413].includes(status) || status === 503, `${status} ${text}`)
  assert.match(String(head['x-request-id']), /^req_/)
  if (status < 400) return
  if (method === 'HEAD') assert.equal(text, '')
  else checkEnvelope(status, head['x-request-id'], text)
}
