import assert from 'node:assert/strict'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, it } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { rawClient } from '../../support/app-server.ts'
import { cleaningUp } from '../../support/clean-up.ts'
import {
  chat,
  type GatewayProcess,
  lookUp,
  post,
  startGatewayProcess,
  temporaryFolder,
} from '../../support/gateway-process.ts'
import { chatEvents, startUpstream, stream } from '../../support/scripted-upstream.ts'
import { until } from '../../support/until.ts'

let folder: Awaited<ReturnType<typeof temporaryFolder>>
let gateway: GatewayProcess
let env: Record<string, string>
const cleanUp = cleaningUp(afterEach)
beforeEach(async () => {
  folder = await temporaryFolder()
  cleanUp.after(() => folder.remove())
  env = { DATABASE_URL: `sqlite:${join(folder.path, 'gateway.db')}` }
  gateway = await startGatewayProcess(env)
  cleanUp.after(() => gateway.stop())
})

/** Notes the readiness that a balancer sees, again and again until nobody answers. */
async function watchReadiness(url: string, seen: string[]): Promise<void> {
  for (;;) {
    const status = await fetch(`${url}/readyz`).then(
      async (response) => {
        await response.arrayBuffer()
        return String(response.status)
      },
      (error: Error & { cause?: { code?: string } }) => error.cause?.code ?? error.message,
    )
    if (seen.at(-1) !== status) seen.push(status)
    if (status !== '200' && status !== '503') return
    await sleep(15)
  }
}

describe('SIGTERM', () => {
  it('under load: not ready first, then no request fails, streams end, exit 0, the port is closed', async () => {
    const seen: string[] = []
    const watching = watchReadiness(gateway.url, seen)
    await until(() => seen.includes('200'), 'readiness')
    const failures: string[] = []
    const ids: (string | null)[] = []
    // Each sends until the balancer says "not ready", as callers behind one do; what was sent must be answered whole.
    const caller = async (streams: boolean): Promise<void> => {
      while (!seen.includes('503')) {
        try {
          const response = await post(gateway.url, chat('chat-small', 'Hi', { stream: streams }))
          const text = await response.text()
          const whole = streams ? text.trimEnd().endsWith('data: [DONE]') : text.endsWith('}')
          if (response.status !== 200 || !whole) failures.push(`${response.status} ${text.slice(-200)}`)
          ids.push(response.headers.get('x-request-id'))
        } catch (error) {
          failures.push(String((error as Error).cause ?? error))
        }
      }
    }
    const callers = Array.from({ length: 12 }, (_, i) => caller(i % 3 !== 0))
    await until(() => ids.length > 20, 'the load')
    gateway.kill('SIGTERM')
    await Promise.all(callers)
    const { code, stderr } = await gateway.exited
    await watching
    assert.deepEqual(failures, [])
    assert.equal(code, 0, stderr)
    assert.equal(stderr, '')
    assert.deepEqual(seen.slice(0, 2), ['200', '503'])
    await assert.rejects(fetch(`${gateway.url}/healthz`))

    const again = await startGatewayProcess(env)
    try {
      for (const id of ids) assert.equal((await lookUp(again.url, id)).outcome, 'completed')
    } finally {
      await again.stop()
    }
  })

  it('serves what still comes on a connection that is open, and closes it behind the answer', async () => {
    const health = 'GET /healthz HTTP/1.1\r\nhost: x\r\n\r\n'
    const client = rawClient(gateway.port, health)
    await client.until('{"status":"ok"}')
    assert.doesNotMatch(client.received, /connection: close/i)
    const seen: string[] = []
    const watching = watchReadiness(gateway.url, seen)
    gateway.kill('SIGTERM')
    await until(() => seen.includes('503'), 'the notice')
    const before = client.received.length
    client.socket.write(health)
    const received = (await client.end()).slice(before)
    assert.match(received, /^HTTP\/1\.1 200 OK/)
    assert.match(received, /connection: close/i)
    assert.equal((await gateway.exited).code, 0)
    await watching
  })

  it('takes the same signal twice at once for one, as npm hands a Ctrl-C on', async () => {
    const answer = await post(gateway.url, chat('chat-small', 'Hi', { stream: true }))
    gateway.kill('SIGINT')
    await until(() => gateway.logged.some(({ msg }) => msg === 'draining'), 'the signal')
    gateway.kill('SIGINT')
    assert.match(await answer.text(), /data: \[DONE\]\s*$/)
    const { code, signal } = await gateway.exited
    assert.deepEqual({ code, signal }, { code: 0, signal: null })
  })

  it('waits for a running stream, and for one that reads slowly', async () => {
    const body = JSON.stringify(chat('chat-small', 'Hi', { stream: true }))
    const head = `POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\nauthorization: Bearer sk-demo\r\ncontent-type: application/json\r\ncontent-length: ${body.length}\r\n\r\n`
    const client = rawClient(gateway.port, head + body)
    await client.until('"content"')
    client.socket.pause()
    gateway.kill('SIGTERM')
    await until(() => gateway.logged.some(({ msg }) => msg === 'draining'), 'the signal')
    await sleep(400)
    client.socket.resume()
    const received = await client.end()
    assert.match(received, /data: \[DONE\]/)
    assert.match(received, /\r\n0\r\n\r\n$/, 'ended regularly')
    assert.equal((await gateway.exited).code, 0)
  })

  it('waits for a call that is drained although its caller has left, and keeps its entry', async (t) => {
    await gateway.stop()
    const upstream = await startUpstream((res) =>
      stream(res, chatEvents(['a', 'b', 'c', 'd']), { paceMs: 150 }),
    )
    t.after(() => upstream.close())
    const config = join(folder.path, 'config.json')
    await writeFile(
      config,
      JSON.stringify({
        accounts: [{ id: 'demo' }],
        keys: [{ id: 'key', account: 'demo', secret: 'sk-demo' }],
        models: [{ id: 'm', kind: 'chat' }],
        lines: [
          { id: 'l', provider: 'p', protocol: 'openai', baseUrl: `${upstream.url}/v1`, models: { m: 'u' } },
        ],
        routing: { onDisconnect: 'drain' },
      }),
    )
    const settings = { DATABASE_URL: `sqlite:${join(folder.path, 'drain.db')}`, GATEWAY_CONFIG: config }
    gateway = await startGatewayProcess(settings)
    const leaving = new AbortController()
    const response = await post(gateway.url, chat('m', 'Hi', { stream: true }), {}, leaving.signal)
    const id = response.headers.get('x-request-id')
    leaving.abort()
    gateway.kill('SIGTERM')
    const { code } = await gateway.exited
    assert.equal(code, 0)
    gateway = await startGatewayProcess(settings)
    const { routing, usage } = await lookUp(gateway.url, id)
    assert.deepEqual(routing?.disconnect, { policy: 'drain', ended: 'drained' })
    assert.equal(usage?.source, 'measured')
  })
})
