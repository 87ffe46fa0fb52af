import assert from 'node:assert/strict'
import { before, describe, it } from 'node:test'
import { request } from 'undici'
import { newRequestId } from '../../../lib/core/call/index.ts'
import { OPERATIONS } from '../../../lib/core/operations/index.ts'
import { openApiDocument } from '../../../lib/management/openapi/index.ts'
import type { ErrorEnvelope } from '../../support/answer-bodies.ts'
import { assembledGateway } from '../../support/assembled-gateway.ts'
import { cleaningUp } from '../../support/clean-up.ts'
import { KEY } from '../../support/gateway.ts'

const adminToken = 'admin-token-of-this-test'
/** Paths in the protocol of a provider, whose clients add parameters of their own, and those for probes. */
const NOT_OURS = /^\/(?!admin\/|v1\/(account|calls|usage|tickets)\b)/

interface Described {
  readonly requestBody?: object
  readonly parameters?: readonly { readonly in: string; readonly name: string }[]
}

const operations = Object.entries(
  openApiDocument({ version: '1.0.0', operations: OPERATIONS }).paths as Record<
    string,
    Record<string, Described>
  >,
)
  .filter(([path]) => !NOT_OURS.test(path))
  .flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, described]) => ({
      method: method.toUpperCase(),
      path,
      ...described,
    })),
  )

/** Bodies that are right, each with all the objects that it may hold. */
const BODIES: Readonly<Record<string, object>> = {
  'POST /admin/accounts': { id: 'new', limits: { rpm: 1 } },
  'PATCH /admin/accounts/{id}': { name: 'Changed', limits: { rpm: 1 } },
  'POST /admin/accounts/{id}/deposits': { amount: '5', reference: 'r' },
  'POST /admin/accounts/{id}/adjustments': { amount: '-5', reference: 'r', reason: 'r' },
  'POST /admin/keys': { account: 'acme', limits: { rpm: 1 } },
  'PATCH /admin/keys/{id}': { enabled: false, limits: { rpm: 1 } },
  'POST /admin/keys/{id}/rotate': { overlap_seconds: 1 },
  'POST /admin/budgets': {
    scope: { account: 'acme', tag: 'team=search' },
    amount: '5',
    period: 'day',
  },
  'PATCH /admin/budgets/{id}': { amount: '6' },
  'PATCH /admin/lines/{id}': { enabled: false },
  'POST /admin/operators': { name: 'New', role: 'admin' },
  'PATCH /admin/operators/{id}': { role: 'admin' },
  'POST /admin/operators/{id}/rotate': { overlap_seconds: 1 },
  'POST /admin/webhooks': { url: 'https://example.com/hook' },
  'POST /admin/webhooks/{id}/rotate': { overlap_seconds: 1 },
  'PATCH /admin/tickets/{id}': { reply: 'So it is.' },
  'POST /admin/video-tasks/{id}/resolve': { outcome: 'released' },
  'POST /v1/tickets': { request_id: newRequestId(), message: 'Why?' },
}

let url: string
const cleanUp = cleaningUp()
before(async () => {
  const line = { id: 'acme', provider: 'p', protocol: 'openai', baseUrl: 'http://localhost:1/v1' }
  const gateway = await assembledGateway(
    cleanUp,
    { models: [{ id: 'acme', kind: 'chat' }], lines: [{ ...line, models: { acme: 'm' } }] },
    { adminToken },
  )
  url = gateway.url
})

async function ask(method: string, path: string, body?: object) {
  const token = path.startsWith('/admin') ? adminToken : KEY
  const headers = {
    authorization: `Bearer ${token}`,
    ...(body && { 'content-type': 'application/json', 'content-length': `${JSON.stringify(body).length}` }),
  }
  // `fetch` sends no body with a GET.
  const answer = await request(url + path.replaceAll(/\{\w+\}/g, 'acme'), {
    method: method as 'GET',
    headers,
    ...(body && { body: JSON.stringify(body) }),
  })
  return { status: answer.statusCode, body: (await answer.body.json()) as ErrorEnvelope }
}

/** The body with an unknown member, at its top and in each object within it. */
function spoiled(body: object): { readonly body: object; readonly param: string }[] {
  const within = Object.entries(body).flatMap(([name, value]) =>
    typeof value === 'object' && value !== null
      ? spoiled(value).map((inner) => ({
          body: { ...body, [name]: inner.body },
          param: `${name}.${inner.param}`,
        }))
      : [],
  )
  return [{ body: { ...body, surprise: 1 }, param: 'surprise' }, ...within]
}

const changes = async () => JSON.stringify((await ask('GET', '/admin/changes?limit=100')).body)

describe('a member that an endpoint of ours does not know is refused with its name', () => {
  it('the table has a body for each endpoint that takes one, and no other', () => {
    const taking = operations.filter(({ requestBody }) => requestBody !== undefined)
    assert.deepEqual(Object.keys(BODIES).sort(), taking.map(({ method, path }) => `${method} ${path}`).sort())
    assert.ok(operations.length > 45)
  })

  for (const { method, path } of operations) {
    const good = BODIES[`${method} ${path}`]
    it(`${method} ${path}`, async () => {
      const stood = await changes()
      const byQuery = await ask(method, `${path}?surprise=1`, good)
      assert.deepEqual([byQuery.status, byQuery.body.error?.param], [400, 'surprise'])
      assert.match(byQuery.body.error.message, /"surprise"/)
      for (const { body, param } of spoiled(good ?? {})) {
        const answer = await ask(method, path, body)
        assert.deepEqual([answer.status, answer.body.error?.param], [400, param], JSON.stringify(body))
        assert.match(answer.body.error.message, /surprise is not a known member/)
      }
      assert.equal(await changes(), stood)
    })
  }
})
