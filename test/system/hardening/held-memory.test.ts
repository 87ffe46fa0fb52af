import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, it } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { type RawClient, rawClient } from '../../support/app-server.ts'
import { byteUpstream } from '../../support/byte-upstream.ts'
import { cleaningUp } from '../../support/clean-up.ts'
import { drained } from '../../support/drained.ts'
import { chat, startGatewayProcess, temporaryFolder } from '../../support/gateway-process.ts'
import { chatAnswer, chatChunk } from '../../support/scripted-upstream.ts'
import { until } from '../../support/until.ts'

const MB = 1024 * 1024
const LIMIT = 4 * MB
const BUDGET = 32 * MB
const KEYS = 20
const EVENT = chatChunk({ content: 'x'.repeat(32 * 1024) })

describe('the memory that callers can make a gateway hold', async () => {
  const cleanUp = cleaningUp()
  const folder = await temporaryFolder()
  cleanUp.after(() => folder.remove())
  const upstream = await byteUpstream(cleanUp, async (req, res) => {
    const body: Buffer[] = []
    for await (const piece of req) body.push(piece as Buffer)
    if (!String(Buffer.concat(body)).includes('"stream":true')) return chatAnswer(res)
    res.writeHead(200, { 'content-type': 'text/event-stream' })
    while (!res.destroyed) {
      if (!res.write(EVENT)) await drained(res)
    }
  })
  const config = join(folder.path, 'config.json')
  const ids = [...Array.from({ length: KEYS }, (_, i) => `attacker-${i}`), 'victim']
  await writeFile(
    config,
    JSON.stringify({
      bodyLimitBytes: LIMIT,
      bodyBudgetBytes: BUDGET,
      accounts: [{ id: 'attacker' }, { id: 'victim' }],
      keys: ids.map((id) => ({ id, account: id.split('-')[0], secret: `sk-${id}` })),
      models: [{ id: 'chat-small', kind: 'chat' }],
      lines: [
        {
          id: 'l',
          provider: 'p',
          protocol: 'openai',
          baseUrl: `${upstream.url}/v1`,
          models: { 'chat-small': 'u' },
        },
      ],
    }),
  )
  const gateway = await startGatewayProcess({ GATEWAY_CONFIG: config })
  cleanUp.after(() => gateway.stop())
  const residentMb = () =>
    Number(/VmRSS:\s+(\d+) kB/.exec(readFileSync(`/proc/${gateway.pid}/status`, 'utf8'))?.[1]) / 1024
  const head = (key: string, length: number) =>
    `POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\nauthorization: Bearer sk-${key}\r\ncontent-type: application/json\r\ncontent-length: ${length}\r\n\r\n`
  const victim = async (filler: number) => {
    const response = await fetch(`${gateway.url}/v1/chat/completions`, {
      method: 'POST',
      headers: { authorization: 'Bearer sk-victim', 'content-type': 'application/json' },
      body: JSON.stringify(chat('chat-small', 'Hi', { filler: 'x'.repeat(filler) })),
    })
    await response.arrayBuffer()
    return response.status
  }
  for (let i = 0; i < 30; i++) assert.equal(await victim(LIMIT / 4), 200)

  it('is bounded for slow uploads, and others are served', async () => {
    const before = residentMb()
    const body = Buffer.alloc(LIMIT - 1024, 'x')
    const clients: RawClient[] = []
    for (let round = 0; round < 10; round++) {
      for (let i = 0; i < KEYS; i++) {
        const raw = rawClient(gateway.port, head(`attacker-${i}`, LIMIT))
        raw.socket.write(body)
        clients.push(raw)
      }
      await sleep(100)
    }
    await until(() => clients.filter(({ received }) => received !== '').length > 150, 'most are refused')
    for (const { received } of clients) assert.match(received, /^$|^HTTP\/1\.1 (?:429|503) /)
    assert.equal(await victim(LIMIT / 2), 200)
    const grown = residentMb() - before
    // 800 MB were sent. Besides the budget it is what V8 and the sockets have not given back yet.
    assert.ok(grown < BUDGET / MB + 170, `${grown} MB more`)
    for (const { socket } of clients) socket.destroy()
  })

  it('is bounded for callers that read nothing', async () => {
    const before = residentMb()
    const request = JSON.stringify(chat('chat-small', 'Hi', { stream: true }))
    const clients = Array.from({ length: 100 }, (_, i) => {
      const raw = rawClient(gateway.port, head(`attacker-${i % KEYS}`, request.length) + request)
      raw.socket.once('data', () => raw.socket.pause())
      return raw
    })
    await sleep(4000)
    assert.equal(await victim(1000), 200)
    const grown = residentMb() - before
    assert.ok(grown < 120, `${grown} MB more`)
    for (const { socket } of clients) socket.destroy()
  })
})
