/**
 * The floor of a gateway that leaves to libraries what they do: an Express app of seven middlewares, zod for the body,
 * rate-limiter-flexible for two levels of requests and tokens, a hashed key, the headers of the limits, undici's `dispatch()`, the
 * answer parsed, a line in a log. No lines to choose from, no failover, no money that could be lost.
 */
import { createHash, randomUUID } from 'node:crypto'
import type { AddressInfo } from 'node:net'
import express, { type NextFunction, type Request, type Response } from 'express'
import { RateLimiterMemory } from 'rate-limiter-flexible'
import { type Dispatcher, Pool } from 'undici'
import { z } from 'zod'
import { BENCH_KEY, PATH } from '../workload.ts'

const KEPT_ENTRIES = 10_000
const HELD = 1000n
const LIMIT_HEADERS = ['limit', 'remaining', 'reset'].flatMap((each) => [
  `${each}-requests`,
  `${each}-tokens`,
])

const pool = new Pool(process.env.UPSTREAM ?? '', { headersTimeout: 0, bodyTimeout: 0 })
const limiter = new RateLimiterMemory({ points: Number.MAX_SAFE_INTEGER, duration: 60 })
const keys = new Map([[hashOf(BENCH_KEY), { id: 'key_bench', account: 'bench' }]])
const bodySchema = z.looseObject({
  model: z.string(),
  messages: z.array(z.looseObject({ role: z.string(), content: z.string() })),
  max_tokens: z.number().nullish(),
  temperature: z.number().nullish(),
  stream: z.boolean().nullish(),
})

interface Call {
  readonly id: string
  readonly startedAt: number
  key?: { readonly id: string; readonly account: string } | undefined
  raw: Buffer
  streamed: boolean
  usage?: unknown
}

const calls = new WeakMap<Request, Call>()
const log: object[] = []
let balance = 1_000_000_000_000_000n

function hashOf(secret: string): string {
  return createHash('sha256').update(secret).digest('base64url')
}

function callOf(req: Request): Call {
  return calls.get(req) as Call
}

function beginCall(req: Request, res: Response, next: NextFunction): void {
  const call: Call = {
    id: `req_${randomUUID()}`,
    startedAt: Date.now(),
    raw: Buffer.alloc(0),
    streamed: false,
  }
  calls.set(req, call)
  res.setHeader('x-request-id', call.id)
  next()
}

function writeLog(req: Request, res: Response, next: NextFunction): void {
  res.on('close', () => {
    const { id, startedAt, key, usage } = callOf(req)
    log.push({ id, startedAt, key: key?.id, usage, status: res.statusCode, ms: Date.now() - startedAt })
    if (log.length > 2 * KEPT_ENTRIES) log.splice(0, KEPT_ENTRIES)
  })
  next()
}

function authenticate(req: Request, res: Response, next: NextFunction): void {
  const key = keys.get(hashOf(String(req.headers.authorization).slice('Bearer '.length)))
  callOf(req).key = key
  if (key) next()
  else res.sendStatus(401)
}

async function readRequest(req: Request, _res: Response, next: NextFunction): Promise<void> {
  const received: Buffer[] = []
  for await (const chunk of req) received.push(chunk as Buffer)
  const call = callOf(req)
  call.raw = Buffer.concat(received)
  call.streamed = bodySchema.parse(JSON.parse(call.raw.toString())).stream === true
  next()
}

async function limit(_req: Request, res: Response, next: NextFunction): Promise<void> {
  const subjects = ['key:requests', 'key:tokens', 'account:requests', 'account:tokens']
  const [{ consumedPoints = 0 } = {}] = await Promise.all(subjects.map((key) => limiter.consume(key)))
  for (const name of LIMIT_HEADERS) res.setHeader(`x-ratelimit-${name}`, consumedPoints)
  next()
}

function reserve(_req: Request, res: Response, next: NextFunction): void {
  if (balance < HELD) {
    res.sendStatus(402)
    return
  }
  balance -= HELD
  res.on('close', () => {
    balance += HELD - 10n
  })
  next()
}

async function relay(req: Request, res: Response): Promise<void> {
  const call = callOf(req)
  if (call.streamed) res.writeHead(200, { 'content-type': 'text/event-stream' })
  const answer = await sent(call, res)
  if (call.streamed) {
    res.end()
    return
  }
  call.usage = (JSON.parse(answer.toString()) as { usage?: unknown }).usage
  res.statusCode = 200
  res.setHeader('content-type', 'application/json')
  res.end(answer)
}

/** Sends the request of a call. Resolves with its answer once it is whole; a stream is passed on meanwhile. */
function sent({ raw, streamed }: Call, res: Response): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = []
    const handler: Dispatcher.DispatchHandler = {
      onRequestStart() {},
      onResponseStart() {},
      onResponseData(controller, chunk) {
        if (!streamed) chunks.push(chunk)
        else if (!res.write(chunk)) {
          controller.pause()
          res.once('drain', () => controller.resume())
        }
      },
      onResponseEnd: () => resolve(Buffer.concat(chunks)),
      onResponseError: (_controller, error) => reject(error),
    }
    const headers = { 'content-type': 'application/json', authorization: `Bearer ${BENCH_KEY}` }
    pool.dispatch({ path: PATH, method: 'POST', headers, body: raw }, handler)
  })
}

const app = express()
app.disable('x-powered-by')
app.use(beginCall, writeLog)
app.post(PATH, authenticate, readRequest, limit, reserve, relay)
const server = app.listen(Number(process.env.PORT ?? 0), '127.0.0.1', () => {
  console.log(`listening ${(server.address() as AddressInfo).port}`)
})
