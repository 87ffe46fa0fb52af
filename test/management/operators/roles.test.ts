import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import type { AddressInfo } from 'node:net'
import { before, describe, it } from 'node:test'
import { createGateway } from 'express-model-gateway/gateway'
import { sql } from 'kysely'
import { ROLES, type Role } from '../../../lib/core/call/index.ts'
import { OPERATIONS } from '../../../lib/core/operations/index.ts'
import { openApiDocument } from '../../../lib/management/openapi/index.ts'
import { type Database, openDatabase } from '../../../lib/stores/sql/index.ts'
import { temporaryDatabase } from '../../stores/sql/support/temporary-database.ts'
import { recordingLogger } from '../../support/app-server.ts'
import { endGateway } from '../../support/assembled-gateway.ts'
import { cleaningUp } from '../../support/clean-up.ts'
import { until } from '../../support/until.ts'

const ADMIN_TOKEN = 'root-token-of-the-first-admin'
const README = new URL('../../../lib/management/README.md', import.meta.url)

/** Every operation below `/admin` of the OpenAPI document: method, and path as the README writes it. */
const operations = Object.entries(
  openApiDocument({ version: '1.0.0', operations: OPERATIONS }).paths as Record<string, object>,
)
  .filter(([path]) => path.startsWith('/admin/'))
  .flatMap(([path, methods]) =>
    Object.keys(methods).map((method) => ({
      method: method.toUpperCase(),
      path: path.slice('/admin'.length),
    })),
  )

/** The role that the README's table names for `GET /accounts`, and so on. */
function documented(): Map<string, string> {
  const [, section = ''] = readFileSync(README, 'utf8').split('\n## Roles\n')
  const [table = ''] = section.split('\n## ')
  const rows = [...table.matchAll(/^\| `(\w+)` \| (.*) \|$/gm)]
  return new Map(
    rows.flatMap(([, role = '', cell = '']) => {
      let method = ''
      return [...cell.matchAll(/`([^`]+)`/g)].flatMap(([, text = '']): [string, string][] => {
        if (!text.startsWith('/')) method = text
        return text.startsWith('/') ? [[`${method} ${text}`, role]] : []
      })
    }),
  )
}

/** The roles that a route lets in if it needs this role. */
const holders = (needed: string): readonly Role[] =>
  ROLES.filter((role) => role === 'admin' || role === needed || needed === 'viewer')

let url: string
let db: Database
const tokens = new Map<Role, string>()
const cleanUp = cleaningUp()

function ask(token: string | undefined, method: string, path: string, body?: object): Promise<Response> {
  return fetch(`${url}/admin${path}`, {
    method,
    headers: {
      ...(token !== undefined && { authorization: `Bearer ${token}` }),
      ...(body && { 'content-type': 'application/json' }),
    },
    ...(body && { body: JSON.stringify(body) }),
  })
}

/** Where processes agree by themselves, at any time, which of them does some work, and how far it is. */
const UPKEEP = new Set(['upkeep', 'lease_watchers', 'usage_marks'])

/** Every row of every table. The rows by which a process tests its writes, or takes its turn, are no change. */
async function dump(): Promise<string> {
  const { rows: tables } = await sql<{ name: string }>`
    select name from sqlite_master where type = 'table' order by name`.execute(db)
  const contents = await Promise.all(
    tables
      .filter(({ name }) => !UPKEEP.has(name))
      .map(async ({ name }) => {
        const { rows } = await sql<{
          id?: unknown
          state?: unknown
        }>`select * from ${sql.table(name)}`.execute(db)
        return [name, rows.filter(({ id, state }) => id !== ' write' && state !== 'turn')]
      }),
  )
  return JSON.stringify(contents, (_key, value) => (typeof value === 'bigint' ? `${value}` : value))
}

/** Bodies that change something where an administrator sends them. */
function bodyFor({ method, path }: { method: string; path: string }): object | undefined {
  if (method === 'GET' || method === 'DELETE' || path === '/keys/{id}/rotate') return undefined
  const bodies: Record<string, object> = {
    'POST /accounts': { id: 'new' },
    'PATCH /accounts/{id}': { name: 'Changed' },
    'POST /accounts/{id}/deposits': { amount: '5', reference: 'r' },
    'POST /accounts/{id}/adjustments': { amount: '-5', reference: 'r', reason: 'r' },
    'POST /keys': { account: 'acme' },
    'PATCH /keys/{id}': { enabled: false },
    'PATCH /lines/{id}': { enabled: false },
    'POST /operators': { name: 'New', role: 'admin' },
    'PATCH /operators/{id}': { role: 'admin' },
  }
  return bodies[`${method} ${path}`] ?? {}
}

before(async () => {
  const { url: databaseUrl, remove } = await temporaryDatabase()
  cleanUp.after(remove)
  const gateway = await createGateway(
    {
      accounts: [{ id: 'acme', balance: '25.00' }, { id: 'globex' }],
      keys: [{ id: 'acme', account: 'acme', secret: 'sk-acme' }],
      models: [{ id: 'acme', kind: 'chat' }],
      lines: [
        {
          id: 'acme',
          provider: 'p',
          protocol: 'openai',
          baseUrl: 'http://localhost/v1',
          models: { acme: 'm' },
        },
      ],
    },
    { databaseUrl, adminToken: ADMIN_TOKEN, logger: recordingLogger(), env: {} },
  )
  const server = gateway.listen(0, '127.0.0.1')
  cleanUp.after(() => endGateway(gateway, server))
  await until(() => server.listening, 'the gateway listens')
  url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  db = await openDatabase(databaseUrl, { readOnly: true })
  cleanUp.after(() => db.destroy())
  for (const role of ROLES) {
    const response = await ask(ADMIN_TOKEN, 'POST', '/operators', { name: `The ${role}`, role })
    const { token } = (await response.json()) as { token: string }
    tokens.set(role, token)
  }
})

describe('roles', () => {
  it('are documented for each route of the OpenAPI document, as it lets operators in', async () => {
    assert.ok(operations.length > 30)
    const table = documented()
    const faults: string[] = []
    for (const operation of operations) {
      const { method, path } = operation
      const needed = table.get(`${method} ${path}`) ?? 'admin'
      // Nothing has this id, so that not even an administrator changes anything here.
      const target = path.replaceAll(/\{\w+\}/g, 'nobody')
      for (const role of ROLES) {
        const response = await ask(tokens.get(role), method, target, method === 'GET' ? undefined : {})
        const { error } = (await response.json()) as { error?: { code: string; message: string } }
        const isRefused = response.status === 403 && error?.code === 'role_not_allowed'
        if (isRefused && !error.message.includes(`"${needed}"`))
          faults.push(`${method} ${path}: ${error.message}`)
        if (isRefused === holders(needed).includes(role))
          faults.push(`${method} ${path}: "${needed}" in the README; ${role} got ${response.status}`)
      }
      const { status } = await ask(undefined, method, target)
      if (status !== 401) faults.push(`${method} ${path}: ${status} without a token`)
    }
    assert.deepEqual(faults, [])
  })

  it('let a path that no route serves be asked by administrators only', async () => {
    for (const [method, path] of [
      ['GET', '/unknown'],
      ['GET', '/'],
      ['PUT', '/accounts'],
      ['DELETE', '/accounts/acme'],
      ['OPTIONS', '/accounts'],
      ['POST', '/accounts/acme'],
      ['GET', '/accounts/acme/deposits'],
      ['GET', '//accounts'],
      ['GET', '/operators%2F..%2Faccounts'],
    ] as const) {
      for (const role of ['viewer', 'support', 'finance'] as const)
        assert.equal((await ask(tokens.get(role), method, path)).status, 403, `${role} ${method} ${path}`)
    }
  })

  for (const role of ['viewer', 'support', 'finance'] as const) {
    it(`change nothing beyond those of ${role}, whatever is sent`, async () => {
      const table = documented()
      const refused = operations.filter(
        ({ method, path }) =>
          method !== 'GET' && !holders(table.get(`${method} ${path}`) ?? 'admin').includes(role),
      )
      assert.ok(refused.length > 8)
      const earlier = await dump()
      for (const operation of refused) {
        for (const spelled of [(path: string) => path, (path: string) => `${path.toUpperCase()}/`]) {
          const path = spelled(operation.path).replaceAll(/\{\w+\}/gi, 'acme')
          const response = await ask(tokens.get(role), operation.method, path, bodyFor(operation))
          assert.equal(response.status, 403, `${operation.method} ${path}`)
        }
      }
      assert.equal(await dump(), earlier)
    })
  }

  it('are the database as much as the token: a change and a deletion hold from the next request on', async () => {
    const made = await ask(ADMIN_TOKEN, 'POST', '/operators', { name: 'Ada', role: 'viewer' })
    assert.equal(made.status, 201)
    const { id, token } = (await made.json()) as { id: string; token: string }
    assert.match(token, /^operator-/)
    const rename = () => ask(token, 'PATCH', '/accounts/globex', { name: `Globex ${Math.random()}` })
    assert.equal((await rename()).status, 403)
    await ask(ADMIN_TOKEN, 'PATCH', `/operators/${id}`, { role: 'admin' })
    assert.equal((await rename()).status, 200)
    const rotated = await ask(token, 'POST', `/operators/${id}/rotate`, { overlap_seconds: 60 })
    const next = ((await rotated.json()) as { token: string }).token
    for (const valid of [token, next]) assert.equal((await ask(valid, 'GET', '/accounts')).status, 200)
    assert.equal((await ask(next, 'POST', `/operators/${id}/rotate`)).status, 200)
    for (const gone of [token]) assert.equal((await ask(gone, 'GET', '/accounts')).status, 401)
    await ask(ADMIN_TOKEN, 'DELETE', `/operators/${id}`)
    for (const gone of [token, next]) assert.equal((await ask(gone, 'GET', '/accounts')).status, 401)
    assert.ok(!(await dump()).includes(token))
  })

  it('stand with the name in the change log, whatever the header says; with ADMIN_TOKEN the header names the person', async () => {
    const headers = { 'x-admin-actor': 'Mallory', 'content-type': 'application/json' }
    const patch = (token: string | undefined, name: string) =>
      fetch(`${url}/admin/accounts/globex`, {
        method: 'PATCH',
        headers: { ...headers, authorization: `Bearer ${token}` },
        body: JSON.stringify({ name }),
      })
    await patch(tokens.get('admin'), 'one')
    await patch(ADMIN_TOKEN, 'two')
    const response = await ask(tokens.get('viewer'), 'GET', '/changes?subject=globex&limit=2')
    const { data } = (await response.json()) as { data: { actor: string; after: { name: string } }[] }
    assert.deepEqual(
      data.map(({ actor, after }) => [after.name, actor]),
      [
        ['two', 'Mallory'],
        ['one', 'The admin'],
      ],
    )
  })
})
