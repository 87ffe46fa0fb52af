import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { describe, it } from 'node:test'
import express, { type Express } from 'express'
import { callOf } from '../../../lib/core/call/index.ts'
import { beginCall, messageClassesOf } from '../../../lib/middleware/begin-call/index.ts'
import { cleaningUp } from '../../support/clean-up.ts'

const cleanUp = cleaningUp()

async function serve(
  app: Express,
  seen?: (req: IncomingMessage, res: ServerResponse) => void,
): Promise<string> {
  const server = createServer(messageClassesOf(app))
  if (seen) server.on('request', seen)
  server.on('request', app)
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  cleanUp.after(() => server.close())
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
}

describe('the classes of an app', () => {
  it('make requests and responses with the prototypes that Express would give them', async () => {
    const app = express()
    app.get('/', (_req, res) => void res.end())
    const prototypes: object[] = []
    const url = await serve(app, (req, res) =>
      prototypes.push(Object.getPrototypeOf(req), Object.getPrototypeOf(res)),
    )

    await fetch(url)

    assert.equal(prototypes[0], app.request)
    assert.equal(prototypes[1], app.response)
  })

  it('leave all that Express offers as it is', async () => {
    const app = express().set('trust proxy', true)
    app.use(beginCall())
    app.get('/who', (req, res) => {
      res.status(201).json({ ip: req.ip, app: req.app === app && res.app === app, id: callOf(req).id })
    })
    const url = await serve(app)

    const answer = await fetch(`${url}/who`, { headers: { 'x-forwarded-for': '192.0.2.7' } })

    assert.equal(answer.status, 201)
    const id = answer.headers.get('x-request-id')
    assert.deepEqual(await answer.json(), { ip: '192.0.2.7', app: true, id })
  })

  it('keep what is put on the prototypes, before and after', async () => {
    const app = express()
    Object.assign(app.request, { early: 'early' })
    const url = await serve(app)
    Object.assign(app.request, { late: 'late' })
    app.get('/', (req, res) => {
      const { early, late } = req as unknown as { early: string; late: string }
      res.json([early, late])
    })

    assert.deepEqual(await (await fetch(url)).json(), ['early', 'late'])
  })

  it('let an app that is mounted have prototypes of its own for its requests', async () => {
    const app = express()
    const url = await serve(app)
    const inner = express()
    Object.assign(inner.request, { of: 'inner' })
    inner.get('/', (req, res, next) => {
      res.locals.inner = [(req as unknown as { of: string }).of, req.app === inner]
      next()
    })
    app.use('/inner', inner)
    app.use((req, res) => void res.json([...res.locals.inner, 'of' in req, req.app === app]))

    assert.deepEqual(await (await fetch(`${url}/inner`)).json(), ['inner', true, false, true])
  })

  it('keep headers as Node does', async () => {
    const app = express().disable('x-powered-by')
    app.get('/', (_req, res) => {
      res.setHeader('X-Of-One', 'first').setHeader('x-of-one', 'second')
      res.setHeader('x-removed', 'no').removeHeader('X-Removed')
      res.appendHeader('x-of-two', 'a').appendHeader('X-Of-Two', 'b')
      res.setHeader('x-replaced', 'no')
      assert.throws(() => res.setHeader('x-split', 'a\r\nb'), { code: 'ERR_INVALID_CHAR' })
      assert.throws(() => res.setHeader('x split', 'a'), { code: 'ERR_INVALID_HTTP_TOKEN' })
      assert.equal(res.getHeader('X-OF-ONE'), 'second')
      assert.equal(res.hasHeader('x-removed'), false)
      assert.deepEqual(res.getHeaderNames(), ['x-of-one', 'x-of-two', 'x-replaced'])
      assert.deepEqual(
        { ...res.getHeaders() },
        { 'x-of-one': 'second', 'x-of-two': ['a', 'b'], 'x-replaced': 'no' },
      )
      res.writeHead(203, { 'X-Replaced': 'yes', 'content-length': 2 })
      assert.throws(() => res.setHeader('x-late', 'a'), { code: 'ERR_HTTP_HEADERS_SENT' })
      res.end('ok')
    })
    const url = await serve(app)

    const { status, headers } = await fetch(url)

    assert.equal(status, 203)
    const own = [...headers].filter(([name]) => name.startsWith('x-') || name === 'content-length')
    assert.deepEqual(own, [
      ['content-length', '2'],
      ['x-of-one', 'second'],
      ['x-of-two', 'a, b'],
      ['x-replaced', 'yes'],
    ])
  })

  it('lose no header that was set before an app which had been mounted earlier', async () => {
    const app = express()
    const inner = express()
    inner.get('/', (_req, res) => void res.json('inner'))
    app.use(beginCall()).use('/inner', inner)
    const url = await serve(app)

    const { status, headers } = await fetch(`${url}/inner`)

    assert.equal(status, 200)
    assert.match(headers.get('x-request-id') ?? '', /^req_/)
  })
})

it('an app that several servers serve answers at each', async (t) => {
  const app = express()
  app.use(beginCall())
  app.get(
    '/hello',
    (req, res) =>
      void res
        .status(201)
        .set('x-of', req.hostname)
        .json({ id: callOf(req).id }),
  )
  for (let i = 0; i < 3; i++) {
    const server = createServer({ ...messageClassesOf(app) }, app).listen(0, '127.0.0.1')
    await once(server, 'listening')
    t.after(() => {
      server.close()
      server.closeAllConnections()
    })
    const res = await fetch(`http://127.0.0.1:${(server.address() as AddressInfo).port}/hello`)
    assert.deepEqual([res.status, res.headers.get('x-of')], [201, '127.0.0.1'])
    assert.match(((await res.json()) as { id: string }).id, /^req_/)
  }
})
