import assert from 'node:assert/strict'
import { once } from 'node:events'
import http from 'node:http'
import https from 'node:https'
import type { Duplex } from 'node:stream'
import { describe, it } from 'node:test'
import type { Line } from '../../../lib/core/catalog/index.ts'
import { loadConfig } from '../../../lib/core/config/index.ts'
import { agentOf } from '../../../lib/middleware/forward/line-agent.ts'
import { byteUpstream } from '../../support/byte-upstream.ts'
import { connectProxy } from '../../support/connect-proxy.ts'
import { closedPort } from '../../support/scripted-upstream.ts'

function lineAt(baseUrl: string, more: object = {}): Line {
  const { catalog } = loadConfig({
    models: [{ id: 'm', kind: 'chat' }],
    lines: [{ id: 'l', provider: 'p', protocol: 'openai', baseUrl, models: {}, ...more }],
  })
  return catalog.lines[0] as Line
}

const PROXY = { proxy: 'http://127.0.0.1:9' }

describe('the agent of a line', () => {
  it('is its own where it has a proxy or certificates, and none else', () => {
    assert.equal(agentOf(lineAt('http://x/v1')), undefined)
    assert.equal(agentOf(lineAt('https://x/v1')), undefined)
    const plain = lineAt('http://x/v1', PROXY)
    const agent = agentOf(plain)
    assert.ok(agent instanceof http.Agent && !(agent instanceof https.Agent))
    assert.equal(agentOf(plain), agent, 'the same each time')
    assert.notEqual(agentOf(lineAt('http://x/v1', PROXY)), agent)
    assert.ok(agentOf(lineAt('https://x/v1', PROXY)) instanceof https.Agent)
    assert.ok(agentOf({ ...lineAt('https://x/v1'), tls: {} }) instanceof https.Agent)
  })

  it('keeps no connection, and opens those of a line without a proxy as any agent does', () => {
    const own = agentOf({ ...lineAt('https://x/v1'), tls: { ca: 'theirs' } })
    for (const agent of [agentOf(lineAt('http://x/v1', PROXY)), own])
      assert.equal((agent as http.Agent & { keepAlive: boolean }).keepAlive, false)
    const { options } = own as https.Agent
    assert.equal((options.ca as string[]).at(-1), 'theirs')
    assert.equal(Object.hasOwn(own ?? {}, 'createConnection'), false)
  })
})

describe('a connection to a line behind a proxy', () => {
  it('is a tunnel to the line, which is given once it is open', async (t) => {
    const upstream = await byteUpstream(t, (_req, res) => void res.end('through'))
    const port = Number(new URL(upstream.url).port)
    const proxy = await connectProxy(t, () => port)
    const agent = agentOf(lineAt(`http://line.example:${port}/v1`, { proxy: proxy.url }))
    const request = http.get(`http://line.example:${port}/x`, { agent: agent as http.Agent })
    const [response] = await once(request, 'response')
    assert.equal(response.statusCode, 200)
    response.resume()
    await once(response, 'end')
    assert.deepEqual(
      proxy.asked.map(({ to }) => to),
      [`line.example:${port}`],
    )
  })

  it('is an error where there is no proxy, which nobody needs to hear', async () => {
    const proxy = `http://127.0.0.1:${await closedPort()}`
    const agent = agentOf(lineAt('http://line.example/v1', { proxy })) as http.Agent
    const connect = agent.createConnection as unknown as (
      options: object,
      done?: (error: Error | null, socket: Duplex | null) => void,
    ) => unknown
    assert.equal(connect({}), undefined)
    const told = Promise.withResolvers<[Error | null, Duplex | null]>()
    assert.equal(
      connect({}, (...given) => told.resolve(given)),
      undefined,
    )
    const [error, socket] = await told.promise
    assert.ok(error instanceof Error)
    assert.equal(socket, null)
  })
})
