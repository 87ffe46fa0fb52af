import assert from 'node:assert/strict'
import { once } from 'node:events'
import type { ServerResponse } from 'node:http'
import { afterEach, beforeEach, describe, it } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { type RawClient, rawClient } from '../../support/app-server.ts'
import { cleaningUp } from '../../support/clean-up.ts'
import { chatBody, KEY, startGateway, type TestGateway } from '../../support/gateway.ts'
import { chatChunk, type ScriptedUpstream, startUpstream } from '../../support/scripted-upstream.ts'
import { until } from '../../support/until.ts'
import { heldBytes } from './measures.ts'

const MB = 1024 * 1024
const CHUNK = chatChunk({ content: 'x'.repeat(32 * 1024) })
const IDLE_MS = 150

let upstream: ScriptedUpstream
let gateway: TestGateway
let client: RawClient | undefined
const cleanUp = cleaningUp(afterEach)
beforeEach(async () => {
  upstream = await startUpstream()
  cleanUp.after(() => upstream.close())
  gateway = await startGateway({ lines: [{ url: upstream.url, timeouts: { idleMs: IDLE_MS } }] })
  cleanUp.after(() => gateway.close())
  cleanUp.after(() => client?.socket.destroy())
})

/** The progress of an upstream that sends a large answer. */
interface Flood {
  written: number
  /** Whether `write()` has asked it to wait. */
  waiting: boolean
  done: boolean
}

/** Offers `total` bytes, never faster than they are taken. */
function flood(total: number): Flood {
  const state: Flood = { written: 0, waiting: false, done: false }
  upstream.script = async (res: ServerResponse) => {
    res.writeHead(200, { 'content-type': 'text/event-stream' })
    while (state.written < total && !res.destroyed) {
      state.written += CHUNK.length
      if (res.write(CHUNK)) continue
      state.waiting = true
      const left = new AbortController()
      const abort = (): void => left.abort()
      res.once('close', abort)
      await once(res, 'drain', { signal: left.signal }).catch(() => {})
      res.off('close', abort)
      state.waiting = false
    }
    res.end(`${chatChunk({}, 'stop')}data: [DONE]\n\n`)
    state.done = true
  }
  return state
}

/** Asks for a stream and stops reading at its head. */
async function askAndPause(): Promise<RawClient> {
  const body = JSON.stringify(chatBody({ stream: true }))
  client = rawClient(
    Number(new URL(gateway.url).port),
    `POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${KEY}\r\ncontent-type: application/json\r\ncontent-length: ${body.length}\r\n\r\n${body}`,
  )
  await client.until('HTTP/1.1 200')
  client.socket.pause()
  return client
}

/** Waits until the flood has stood still for a while. */
async function standstill(state: Flood): Promise<void> {
  let last = -1
  await until(() => state.waiting, 'the pause')
  while (last !== state.written) {
    last = state.written
    await sleep(60)
  }
}

describe('a caller that does not read', () => {
  it('stops the upstream, and nothing piles up in between', async () => {
    const state = flood(100 * MB)
    const before = await heldBytes()
    await askAndPause()
    await standstill(state)
    assert.ok(state.waiting && !state.done)
    // Sockets' own buffers, which the kernel sizes, are the most of it.
    assert.ok(state.written < 12 * MB, `${state.written / MB} MB of 100 were taken`)
    const held = (await heldBytes()) - before
    assert.ok(held < 4 * MB, `${held / MB} MB are held`)
  })

  it('does not trip the idle clock, and gets the whole stream once it reads again', async () => {
    const total = 24 * MB
    const state = flood(total)
    const { socket, received: head } = await askAndPause()
    await standstill(state)
    await sleep(IDLE_MS * 3)
    assert.ok(!state.done)
    let bytes = head.length
    let tail = ''
    socket.removeAllListeners('data')
    socket.on('data', (chunk: string) => {
      bytes += chunk.length
      tail = (tail + chunk).slice(-200)
    })
    socket.resume()
    await until(() => tail.endsWith('\r\n0\r\n\r\n'), 'the regular end')
    assert.ok(bytes > state.written, `${bytes} bytes came of ${state.written}`)
    assert.match(tail, /data: \[DONE\]/)
    await until(() => gateway.openCalls.size === 0, 'the end of the call')
    const id = /x-request-id: (\S+)/i.exec(head)?.[1] ?? null
    assert.equal((await gateway.entry(id)).outcome, 'completed')
  })

  it('lets go of the upstream when it leaves instead', async () => {
    const state = flood(100 * MB)
    const { socket } = await askAndPause()
    await standstill(state)
    socket.resetAndDestroy()
    await until(() => gateway.openCalls.size === 0, 'the end of the call')
    await until(() => upstream.requests[0]?.cut === true, 'the cut')
    assert.ok(state.written < 12 * MB)
  })
})

describe('a caller that goes away in mid-stream', () => {
  for (const [how, leave] of [
    ['half-closes', (raw: RawClient) => void raw.socket.end()],
    ['resets', (raw: RawClient) => void raw.socket.resetAndDestroy()],
  ] as const) {
    it(`${how}: the upstream is cut, the call ends as interrupted`, async () => {
      upstream.script = (res) => {
        res.writeHead(200, { 'content-type': 'text/event-stream' }).write(chatChunk({ content: 'first' }))
      }
      const body = JSON.stringify(chatBody({ stream: true }))
      client = rawClient(
        Number(new URL(gateway.url).port),
        `POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${KEY}\r\ncontent-length: ${body.length}\r\ncontent-type: application/json\r\n\r\n${body}`,
      )
      await client.until('first')
      leave(client)
      await until(() => gateway.openCalls.size === 0, 'the end of the call', 5000)
      await until(() => upstream.requests[0]?.cut === true, 'the cut')
      const id = /x-request-id: (\S+)/i.exec(client.received)?.[1] ?? null
      const entry = await gateway.entry(id)
      assert.equal(entry.error_code, 'client_closed_request')
      assert.equal(entry.outcome, 'interrupted')
      assert.equal(entry.usage?.source, 'estimated', 'what was produced is billed')
    })
  }
})
