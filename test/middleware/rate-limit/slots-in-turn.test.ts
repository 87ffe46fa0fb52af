import assert from 'node:assert/strict'
import { Agent, createServer, request, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { after, before, describe, it } from 'node:test'
import express, { type RequestHandler } from 'express'
import { errorEnvelope } from '../../../lib/middleware/error-envelope/index.ts'
import { idempotency } from '../../../lib/middleware/idempotency/index.ts'
import { type LimitStore, rateLimit } from '../../../lib/middleware/rate-limit/index.ts'
import { RedisLimitStore } from '../../../lib/stores/redis/index.ts'
import { recordingLogger } from '../../support/app-server.ts'
import { type RedisServer, startRedis, WITHOUT_REDIS } from '../../support/redis-server.ts'

const LARGE = 'x'.repeat(3_000_000)
const TURNS = 6

/** Ways to give an answer. */
const ANSWERS: Record<string, RequestHandler> = {
  json: (_req, res) => void res.json({ ok: true }),
  'a large body': (_req, res) => void res.send(LARGE),
  'a large body without a length': (_req, res) => void res.end(LARGE),
  nothing: (_req, res) => void res.sendStatus(204),
  'a head by itself': (_req, res) => void res.writeHead(200, { 'content-length': '2' }).end('ok'),
  chunks: (_req, res) => {
    res.write('one')
    setImmediate(() => res.end('two'))
  },
  'a declared length, and its end later': (_req, res) => {
    res.setHeader('content-length', 6)
    res.write('one')
    res.write('two')
    setTimeout(() => res.end(), 30)
  },
  'a declared length, large, and its end later': (_req, res) => {
    res.writeHead(200, { 'content-length': LARGE.length })
    res.write(LARGE)
    setTimeout(() => res.end(), 30)
  },
  'an error': (_req, _res, next) => next(new Error('as it is')),
  'an error of its own': (_req, res) => void res.status(503).json({}),
}

/** The last byte of a whole answer, by the length that it declares or its end. */
function ask(port: number, agent: Agent, key?: string): Promise<number> {
  return new Promise((resolve, reject) => {
    const headers = { ...(key !== undefined && { 'idempotency-key': key }) }
    const sent = request({ port, agent, method: 'POST', path: '/', headers }, (res) => {
      const length = Number(res.headers['content-length'] ?? Number.NaN)
      const end = () => resolve(res.statusCode ?? 0)
      let bytes = 0
      res.on('data', (chunk: Buffer) => {
        bytes += chunk.length
        if (bytes === length) end()
      })
      res.on('end', end)
    })
    sent.on('error', reject).end()
  })
}

/** Two processes on one Redis, whose requests reach Redis on connections of their own. */
describe('a caller with one slot that asks two processes in turn', { skip: WITHOUT_REDIS }, () => {
  let redis: RedisServer
  const servers: Server[] = []
  const ports: number[] = []
  let answer: RequestHandler = (_req, res) => void res.end()
  const slow = { ms: 0 }
  const agent = new Agent({ keepAlive: true, maxSockets: 2 })

  before(async () => {
    redis = await startRedis()
    for (let i = 0; i < 2; i++) {
      const logger = recordingLogger()
      const store: LimitStore = new RedisLimitStore({
        redis: slowly(redis.client(), slow),
        logger,
        timeoutMs: 10_000,
      })
      const app = express()
      const limit = rateLimit({ store, levels: [{ name: 'ip', by: () => 'one', concurrency: 1 }] })
      app.use(idempotency({ logger, storeTimeoutMs: 10_000 }), limit, (req, res, next) =>
        answer(req, res, next),
      )
      app.use(errorEnvelope({ logger }))
      const server = createServer(app)
      await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
      servers.push(server)
      ports.push((server.address() as AddressInfo).port)
    }
  })
  after(async () => {
    agent.destroy()
    for (const server of servers) {
      server.close()
      server.closeAllConnections()
    }
    await redis.close()
  })

  for (const [what, handler] of Object.entries(ANSWERS)) {
    for (const keyed of [false, true]) {
      it(`finds it free again, answered with ${what}${keyed ? ', under an Idempotency-Key' : ''}`, async () => {
        answer = handler
        // A return takes its time to be noted, which is when a caller could be faster.
        slow.ms = 10
        for (let i = 0; i < TURNS; i++) {
          const status = await ask(ports[i % 2] as number, agent, keyed ? `${what}-${i}` : undefined)
          assert.notEqual(status, 429, `turn ${i}`)
        }
        assert.equal(await redis.client().zcard('gateway:limits:concurrency:ip:one'), 0)
      })
    }
  }
})

/** The same client, each of whose scripts that give a slot back is sent late. */
function slowly<Client extends object>(client: Client, slow: { ms: number }): Client {
  let asked = 0
  return new Proxy(client, {
    get(target, name) {
      const value: unknown = Reflect.get(target, name)
      if (name !== 'sendCommand' || typeof value !== 'function')
        return typeof value === 'function' ? value.bind(target) : value
      return async (command: unknown) => {
        if (asked++ % 2 === 1) await new Promise((resolve) => setTimeout(resolve, slow.ms))
        return value.call(target, command)
      }
    },
  })
}
