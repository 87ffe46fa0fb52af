import assert from 'node:assert/strict'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { before, describe, it } from 'node:test'
import type { z } from 'zod'
import * as shown from '../../../lib/endpoints/openapi/answer-schemas.ts'
import { cleaningUp } from '../../support/clean-up.ts'
import {
  chat,
  type GatewayProcess,
  post,
  startGatewayProcess,
  temporaryFolder,
} from '../../support/gateway-process.ts'
import { type ScriptedUpstream, startUpstream } from '../../support/scripted-upstream.ts'

const TOKEN = 'admin-token-of-this-test'

let folder: Awaited<ReturnType<typeof temporaryFolder>>
let upstream: ScriptedUpstream
let gateway: GatewayProcess
let requestId = ''
let ticketId = ''
const cleanUp = cleaningUp()
before(async () => {
  folder = await temporaryFolder()
  cleanUp.after(() => folder.remove())
  upstream = await startUpstream()
  cleanUp.after(() => upstream.close())
  const path = join(folder.path, 'config.json')
  const line = {
    id: 'l',
    provider: 'p',
    protocol: 'openai',
    baseUrl: `${upstream.url}/v1`,
    models: { m: 'u' },
  }
  const config = {
    accounts: [{ id: 'acme', balance: '5' }],
    keys: [{ id: 'k', account: 'acme', secret: 'sk-1', quota: '1' }],
    models: [{ id: 'm', kind: 'chat', price: { perRequest: '0.01' } }],
    lines: [line],
  }
  await writeFile(path, JSON.stringify(config))
  gateway = await startGatewayProcess({ ADMIN_TOKEN: TOKEN, GATEWAY_CONFIG: path })
  cleanUp.after(() => gateway.stop())
  const answer = await post(gateway.url, chat('m'), { authorization: 'Bearer sk-1' })
  await answer.arrayBuffer()
  requestId = answer.headers.get('x-request-id') ?? ''
  const ticket = await ask('POST', '/v1/tickets', { request_id: requestId, message: 'Why?' })
  ticketId = (shown.ticket.parse(ticket) as { id: string }).id
})

async function ask(method: string, path: string, body?: object): Promise<unknown> {
  const response = await fetch(gateway.url + path, {
    method,
    headers: {
      authorization: path.startsWith('/admin') ? `Bearer ${TOKEN}` : 'Bearer sk-1',
      'content-type': 'application/json',
    },
    ...(body && { body: JSON.stringify(body) }),
  })
  assert.ok(response.ok, `${method} ${path}: ${response.status}`)
  return response.json()
}

const rows: readonly [string, () => string, z.ZodType, object?][] = [
  ['GET', () => '/healthz', shown.health],
  ['GET', () => '/readyz', shown.health],
  ['GET', () => '/v1/models', shown.models],
  ['GET', () => '/v1/models/m', shown.model],
  ['GET', () => '/v1/models/m/routing', shown.routing],
  ['GET', () => '/v1/account', shown.ownAccount],
  ['GET', () => '/v1/calls', shown.listOf(shown.call)],
  ['GET', () => `/v1/calls/${requestId}`, shown.call],
  ['GET', () => `/v1/tickets/${ticketId}`, shown.ticket],
  ['GET', () => '/admin/accounts', shown.listOf(shown.account)],
  ['POST', () => '/admin/accounts', shown.account, { id: 'new' }],
  ['GET', () => '/admin/accounts/acme', shown.account],
  ['PATCH', () => '/admin/accounts/acme', shown.account, { name: 'Acme' }],
  ['POST', () => '/admin/accounts/acme/deposits', shown.deposit, { amount: '1', reference: 'r' }],
  ['GET', () => '/admin/keys', shown.listOf(shown.key)],
  ['POST', () => '/admin/keys', shown.keyWithSecret, { id: 'new', account: 'acme' }],
  ['GET', () => '/admin/keys/k', shown.key],
  ['PATCH', () => '/admin/keys/k', shown.key, { expires_at: '2099-01-01T00:00:00Z' }],
  ['POST', () => '/admin/keys/new/rotate', shown.keyWithSecret],
  ['DELETE', () => '/admin/keys/new', shown.deleted('key')],
  ['GET', () => '/admin/models', shown.models],
  ['GET', () => '/admin/models/m', shown.model],
  ['GET', () => '/admin/models/m/routing', shown.routing],
  ['GET', () => '/admin/lines', shown.listOf(shown.line)],
  ['GET', () => '/admin/lines/l', shown.line],
  ['PATCH', () => '/admin/lines/l', shown.line, { enabled: true }],
  ['GET', () => '/admin/calls', shown.listOf(shown.call)],
  ['GET', () => `/admin/calls/${requestId}`, shown.call],
  ['GET', () => '/admin/tickets', shown.listOf(shown.ticketWithCall)],
  ['GET', () => `/admin/tickets/${ticketId}`, shown.ticketWithCall],
  ['PATCH', () => `/admin/tickets/${ticketId}`, shown.ticketWithCall, { reply: 'So it is.' }],
  ['GET', () => '/admin/leases', shown.listOf(shown.lease)],
  ['GET', () => '/admin/ledger/check', shown.ledgerCheck],
  ['GET', () => '/admin/video-tasks', shown.listOf(shown.videoTask)],
  ['GET', () => '/admin/changes', shown.listOf(shown.change)],
]

describe('answers are what the document says', () => {
  for (const [method, path, schema, body] of rows) {
    it(`${method} ${String(path).replaceAll(/^\(\) => |['`]/g, '')}`, async () => {
      const { error, data } = schema.safeParse(await ask(method, path(), body))
      assert.equal(error, undefined)
      assert.ok(data)
    })
  }

  it('refusals too', async () => {
    const refused = await fetch(`${gateway.url}/admin/keys`)
    assert.equal(shown.errorEnvelope.safeParse(await refused.json()).error, undefined)
    const message = await fetch(`${gateway.url}/v1/messages`, { method: 'POST' })
    assert.equal(shown.anthropicErrorEnvelope.safeParse(await message.json()).error, undefined)
  })
})
