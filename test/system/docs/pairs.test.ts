import assert from 'node:assert/strict'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { before, describe, it, mock } from 'node:test'
import { pathToFileURL } from 'node:url'
import express, { type ErrorRequestHandler, type RequestHandler } from 'express'
import { ROOT, requestOf } from '../../docs/pages.ts'
import { cleaningUp } from '../../support/clean-up.ts'
import { listen } from '../../support/gateway.ts'
import { type GatewayProcess, startGatewayProcess } from '../../support/gateway-process.ts'
import { DEMO_GATEWAY, DOCUMENTED, type Program, programsOf } from './whole-programs.ts'

/** The documented order of what a program mounts; a parser is no part of the chain and comes before what needs the body. */
const ORDER = [
  ...[
    'beginCall',
    'telemetry',
    'callLog',
    'authenticate',
    'jsonParser',
    'readRequest',
    'guard',
    'idempotency',
  ],
  ...['references', 'rateLimit', 'billingGuard', 'route'],
]

/** The programs of the pages that mount middlewares in front of a handler. */
const programs = programsOf().filter(
  ({ code }) => code.includes('app = express()') && !/'\/admin'|8787\)$/m.test(code),
)

type Handler = RequestHandler | ErrorRequestHandler

/** In place of Express, for a program that is to be mounted together with another one: notes what it mounts. */
const RECORDER = `import express from 'express'
const record = () => {
  const uses = []
  const routes = []
  const app = { uses, routes, set: () => app, use: (...given) => (uses.push(...given.flat().filter((each) => typeof each === 'function')), app) }
  for (const method of ['get', 'post', 'all'])
    app[method] = (path, ...handlers) => (routes.push({ method, path, handlers: handlers.flat() }), app)
  return app
}
export default Object.assign(record, { json: express.json, text: express.text })
`

interface Recorded {
  readonly uses: readonly Handler[]
  readonly routes: readonly {
    readonly method: 'get' | 'post' | 'all'
    readonly path: string
    readonly handlers: readonly Handler[]
  }[]
}

const placeOf = ({ name }: Handler) => ORDER.indexOf(name)
const isOfChain = (handler: Handler) => placeOf(handler) !== -1 && handler.name !== 'route'
const isLast = ({ name }: Handler) => name === 'errorEnvelope' || name === 'unknownPath'

/** Mounts the middlewares of both in their documented order in front of each handler of one. */
function mountTogether(one: Recorded, other: Recorded): express.Express {
  const app = express()
  const own = [...one.uses, ...other.uses].filter((handler) => !isOfChain(handler) && !isLast(handler))
  if (own.length > 0) app.use(own as RequestHandler[])
  for (const [mine, others] of [
    [one, other],
    [other, one],
  ] as const)
    for (const { method, path, handlers } of mine.routes) {
      const ofOthers = [...others.uses, ...others.routes.flatMap((route) => route.handlers)]
      // A program with models reads bodies itself, and only the paths of models have such a body.
      const isOfModels = handlers.some(({ name }) => name === 'readRequest')
      const chain = [...mine.uses, ...handlers, ...ofOthers.filter(({ name }) => name !== 'readRequest')]
        .filter(isOfChain)
        .filter(({ name }) => !isOfModels || name !== 'jsonParser')
        .sort((a, b) => placeOf(a) - placeOf(b))
      const handler = handlers.filter((each) => !isOfChain(each))
      app[method](path, ...([...chain, ...handler] as RequestHandler[]))
    }
  app.use(
    ...([...one.uses, ...other.uses]
      .filter(isLast)
      .sort((a, b) => b.name.localeCompare(a.name)) as RequestHandler[]),
  )
  return app
}

/** The program as it is next to another one: what `authenticate` finds out is not given by hand. */
function codeBeside({ code }: Program, other: Program): string {
  const byHand = `, account: () => 'acme', key: () => null`
  return other.code.includes('authenticate(') ? code.replace(byHand, '') : code
}

/** Returns the first request of each program that its page shows to succeed, with the headers of both programs. */
function requestsOf(pair: readonly Program[]) {
  const shown = pair.map(({ requests }) => requests.find(({ status }) => status < 400))
  const documented = shown.map((line) => line && requestOf(line.words.slice()))
  const both = documented.flatMap((request) => (request?.init.headers ?? []) as [string, string][])
  return documented.flatMap((request, i) => {
    if (!request) return []
    const own = new Headers(request.init.headers)
    for (const [name, value] of both)
      if (!own.has(name) && name.toLowerCase() !== 'content-type') own.set(name, value)
    const init = { ...request.init, headers: own }
    return [
      { status: shown[i]?.status, send: (url: string) => fetch(request.url.replace(DOCUMENTED, url), init) },
    ]
  })
}

describe('two programs of the pages in one app', () => {
  const ignored = join(ROOT, '.data')
  let folder = ''
  let demo: GatewayProcess
  const cleanUp = cleaningUp()
  before(async () => {
    mkdirSync(ignored, { recursive: true })
    // In the repository, so that the package finds itself by its own name.
    folder = mkdtempSync(join(ignored, 'pairs-'))
    cleanUp.after(() => rmSync(folder, { recursive: true, force: true }))
    writeFileSync(join(folder, 'recorder.mjs'), RECORDER)
    demo = await startGatewayProcess()
    cleanUp.after(() => demo.stop())
  })

  it('are found', () => assert.ok(programs.length >= 10, `${programs.length}`))

  async function recorded(code: string, file: string): Promise<Recorded> {
    const parts = code
      .replace(`from 'express'`, `from './recorder.mjs'`)
      .replaceAll(DEMO_GATEWAY, demo.url)
      .replace(/^app\.listen\(\d+\)$/m, 'export default app')
    writeFileSync(join(folder, file), parts)
    return (await import(pathToFileURL(join(folder, file)).href)).default as Recorded
  }

  for (const [i, one] of programs.entries())
    for (const [j, other] of programs.entries()) {
      if (j <= i) continue
      it(`${one.page}:${one.line} and ${other.page}:${other.line} answer as each does alone`, async (t) => {
        const logged = [mock.method(console, 'warn', () => {}), mock.method(console, 'error', () => {})]
        t.after(() => logged.forEach((method) => void method.mock.restore()))
        for (const [k, { status, send }] of requestsOf([one, other]).entries()) {
          // In an app of its own: what one request uses up, the other one lacks.
          const app = mountTogether(
            await recorded(codeBeside(one, other), `${i}-${j}-${k}-one.ts`),
            await recorded(codeBeside(other, one), `${i}-${j}-${k}-other.ts`),
          )
          const server = await listen(app)
          t.after(() => {
            server.close()
            server.closeAllConnections()
          })
          const response = await send(`http://127.0.0.1:${(server.address() as AddressInfo).port}`)
          assert.equal(response.status, status, await response.text())
        }
        assert.deepEqual(
          logged.flatMap(({ mock: { calls } }) => calls.map(({ arguments: line }) => line)),
          [],
        )
      })
    }
})
