import assert from 'node:assert/strict'
import { globSync, readFileSync } from 'node:fs'
import { describe, it } from 'node:test'
import { createConfig, lintFromString } from '@redocly/openapi-core'
import express from 'express'
import { assemble } from '../../../examples/gateway/app.ts'
import { DEPLOYMENT_ENDPOINTS } from '../../../examples/gateway/azure-paths.ts'
import { passThrough as passThroughRoutes } from '../../../examples/gateway/endpoints.ts'
import { Readiness } from '../../../examples/gateway/serving/readiness.ts'
import { openLimitStores } from '../../../examples/gateway/stores/limit-stores.ts'
import { openDurableStores } from '../../../examples/gateway/stores/stores.ts'
import { loadConfig } from '../../../lib/core/config/index.ts'
import { OPERATIONS } from '../../../lib/core/operations/index.ts'
import { LeasePool, MemoryLedger } from '../../../lib/ledger/index.ts'
import { ConfigAuthority } from '../../../lib/management/index.ts'
import { openApiDocument } from '../../../lib/management/openapi/index.ts'
import { UpstreamResources } from '../../../lib/middleware/references/index.ts'
import { LineRegistry } from '../../../lib/middleware/route/index.ts'
import { recordingLogger, serveApp } from '../../support/app-server.ts'
import { mountedRoutes } from './mounted-routes.ts'

const config = loadConfig({
  models: [{ id: 'm', kind: 'chat' }],
  lines: [{ id: 'l', provider: 'p', protocol: 'openai', baseUrl: 'http://localhost/v1', models: { m: 'm' } }],
  passThrough: [
    { path: '/v1/audio/*rest', lines: ['l'] },
    { path: '/v1/files/:id', lines: ['l'] },
  ],
})
const { passThrough } = config
const document = openApiDocument({
  version: '1.2.3',
  operations: OPERATIONS,
  passThrough,
  more: DEPLOYMENT_ENDPOINTS,
})

/** The members of a served document that the tests read. */
interface Described {
  readonly paths: Record<string, object>
  readonly servers: readonly { readonly url: string }[]
  readonly webhooks?: object
}

/** Its operations as requests would name them. */
const operationsOf = ({ paths }: Pick<Described, 'paths'>) =>
  Object.entries(paths).flatMap(([path, methods]) =>
    Object.keys(methods).map((method) => ({ method, path: path.replaceAll(/\{\w+\}/g, 'some') })),
  )

interface UsageOperation {
  readonly parameters: readonly { name?: string; schema: { description?: string; pattern?: string } }[]
  readonly responses: { readonly 200: { readonly content: object } }
}

async function gateway(separateAdminApp = false) {
  const logger = recordingLogger()
  const durable = await openDurableStores('memory:', config, logger)
  const stores = { ...durable, limits: (await openLimitStores(undefined, logger)).limits }
  const readiness = new Readiness(durable.ping)
  const { accounts, adminKeys, seeds } = stores
  const authority = new ConfigAuthority({ accounts, keys: adminKeys, seeds }, config)
  const gateway = assemble({
    config,
    stores,
    logger,
    readiness,
    adminToken: 'some-admin-token',
    authority,
    separateAdminApp,
  })
  return { ...gateway, close: () => gateway.close().then(durable.close) }
}

/** Made anew whenever the config changes, these are no part of the app's own routes. */
async function routesOfPassThrough() {
  const pool = new LeasePool({ ledger: new MemoryLedger() })
  const lines = new LineRegistry()
  const { catalog, region, routing } = config
  const resources = new UpstreamResources()
  const limit = express.json()
  const routingOptions = <T>(options: T): T => options
  const parts = {
    routingOptions,
    routing,
    region,
    catalog: () => catalog,
    lines,
    pool,
    limit,
    resources,
    bodyLimitBytes: 1024,
  }
  const routes = mountedRoutes(express().use(passThroughRoutes(passThrough, parts)))
  resources.close()
  await Promise.all([pool.close(), lines.close()])
  return routes
}

describe('the OpenAPI document', () => {
  it('is one, by the rules of a linter', async () => {
    const rules = { 'operation-4xx-response': 'off' } as const
    const linter = await createConfig({ extends: ['recommended-strict'], rules })
    const problems = await lintFromString({ source: JSON.stringify(document), config: linter })
    assert.deepEqual(
      problems.map(({ message, location }) => `${location[0]?.pointer}: ${message}`),
      [],
    )
  })

  for (const separateAdminApp of [false, true])
    it(`contains every route of its port, and no other, with ADMIN_PORT: ${separateAdminApp}`, async (t) => {
      const { app, adminApp, close } = await gateway(separateAdminApp)
      t.after(close)
      for (const each of new Set([app, adminApp])) {
        const server = await serveApp((outer) => void outer.use(each))
        t.after(() => server.close())
        const served = (await (await fetch(`${server.url}/openapi.json`)).json()) as Described
        const operations = operationsOf(served)
        const routes = [...mountedRoutes(each), ...(each === app ? await routesOfPassThrough() : [])]
        assert.ok(routes.length > 20, 'the routes were found')
        const untold = routes.filter(
          // The root leads a browser to the console.
          (route) =>
            route.name !== 'get /' && !operations.some(({ method, path }) => route.serves(method, path)),
        )
        assert.deepEqual(
          untold.map(({ name }) => name),
          [],
        )
        const unserved = operations.filter(
          ({ method, path }) => !routes.some((route) => route.serves(method, path)),
        )
        assert.deepEqual(unserved, [])
        assert.equal(served.webhooks !== undefined, each === adminApp)
      }
    })

  it('names the place where it is served, behind a mount and behind a proxy', async (t) => {
    const { app, close } = await gateway()
    const server = await serveApp((outer) => void outer.use('/ai', express().use('/llm', app)))
    t.after(() => server.close().then(close))
    const address = `${server.url}/ai/llm/openapi.json`
    const { servers } = (await (await fetch(address)).json()) as Described
    assert.deepEqual(
      servers.map(({ url }) => new URL(url, address).href),
      [`${server.url}/ai/llm/`],
    )
  })

  it('is served to anyone', async (t) => {
    const { app, close } = await gateway()
    const server = await serveApp((outer) => void outer.use(app))
    t.after(() => server.close().then(close))
    const response = await fetch(`${server.url}/openapi.json`)
    assert.equal(response.status, 200)
    const served = (await response.json()) as { openapi: string; info: { version: string }; paths: object }
    assert.equal(served.openapi, '3.1.1')
    assert.match(served.info.version, /^\d+\.\d+\.\d+/)
    assert.deepEqual(Object.keys(served.paths), Object.keys(document.paths as object))
  })

  it('names no line, no model and no key of the config', () => {
    const text = JSON.stringify(document)
    assert.ok(!text.includes('localhost'))
    assert.ok(!text.includes('some-admin-token'))
  })

  it('names the headers of the gateway that a request to a model may have', () => {
    const read = new Set(
      globSync('lib/{core,middleware,routing}/**/*.ts').flatMap((file) =>
        [...readFileSync(file, 'utf8').matchAll(/headers\['(x-gateway-[a-z-]+)'\]/g)].map(([, name]) => name),
      ),
    )
    assert.ok(read.size >= 3, [...read].join())
    const { parameters } = document.components as {
      parameters: Readonly<Record<string, { name: string; in: string }>>
    }
    const { paths } = document as { paths: Record<string, { post?: { parameters?: { $ref: string }[] } }> }
    for (const path of [
      ...OPERATIONS.map((each) => each.path),
      ...DEPLOYMENT_ENDPOINTS.map((each) => each.path),
    ]) {
      const told = paths[path]?.post?.parameters?.map(
        ({ $ref }) => parameters[`${$ref}`.split('/').at(-1) ?? ''],
      )
      const names = told?.flatMap((each) => (each?.in === 'header' ? each.name.toLowerCase() : []))
      assert.deepEqual(new Set(names), new Set(['idempotency-key', ...read]), path)
    }
  })

  it('words errors in the protocol of the path', () => {
    const errorsOf = (path: string) =>
      JSON.stringify(
        (document.paths as Record<string, { post: { responses: object } }>)[path]?.post.responses,
      )
    assert.match(errorsOf('/v1/messages'), /responses\/AnthropicError/)
    assert.match(errorsOf('/v1/chat/completions'), /responses\/Error/)
    assert.match(errorsOf('/admin/keys'), /responses\/Error/)
  })

  for (const path of ['/v1/usage', '/admin/usage'])
    it(`says which pages ${path} has, and that it is a table, too`, () => {
      const { parameters, responses } =
        (document.paths as Record<string, { get: UsageOperation }>)[path]?.get ?? {}
      const limit = parameters?.find(({ name }) => name === 'limit')
      assert.match(limit?.schema.description ?? '', /from 1 to 1000\. Defaults to 100, with csv to 10000/)
      assert.match('1000', new RegExp(limit?.schema.pattern ?? 'none'))
      assert.deepEqual(Object.keys(responses?.['200'].content ?? {}), ['application/json', 'text/csv'])
    })
})
