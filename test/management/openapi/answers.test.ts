import assert from 'node:assert/strict'
import { before, describe, it } from 'node:test'
import { z } from 'zod'
import { hashSecret } from '../../../lib/core/catalog/index.ts'
import { ADMIN_ENDPOINTS } from '../../../lib/management/admin-endpoints.ts'
import { CALLER_ENDPOINTS } from '../../../lib/management/openapi/caller-endpoints.ts'
import { mountedAt } from '../../../lib/management/openapi/describe-endpoint.ts'
import { anthropicErrorEnvelope, errorEnvelope } from '../../../lib/management/openapi/error-schemas.ts'
import { openDatabase, SqlSessionStore } from '../../../lib/stores/sql/index.ts'
import { originOf } from '../../contracts/account-store.ts'
import { PATIENT, temporaryDatabase } from '../../stores/sql/support/temporary-database.ts'
import { cleaningUp } from '../../support/clean-up.ts'
import { chat, type GatewayProcess, post, startGatewayProcess } from '../../support/gateway-process.ts'
import { untilAsync } from '../../support/until.ts'

const TOKEN = 'admin-token-of-this-test'
const DEMO = { authorization: 'Bearer sk-demo' }
const WEBHOOK = { url: 'https://example.com/hooks', events: ['balance.low'] }
const BUDGET = { scope: { account: 'demo' }, amount: '50', period: 'month', soft: [0.5] }
const ADJUSTMENT = { amount: '-1', reference: 'a', reason: 'A mistake.' }
const VIDEO = { model: 'video-small', prompt: 'waves', seconds: '4' }

/** The sessions of operators who signed in at a provider. */
const SESSIONS = { own: 'o'.repeat(43), other: 'x'.repeat(43) }
const OWN_SESSION = {
  cookie: `gateway_session=${SESSIONS.own}`,
  'x-gateway-console': '1',
  'sec-fetch-site': 'same-origin',
}

const CHAT = '/v1/chat/completions'
const MESSAGES = '/v1/messages'

/** Requests that are refused, at least the second time. */
const REFUSED: readonly [what: string, path: string, body: object, headers?: Record<string, string>][] = [
  ['without a key', CHAT, {}, { authorization: '' }],
  ['a member that is missing', CHAT, { model: 'chat-small' }],
  ['a repetition', CHAT, chat('chat-small'), { 'idempotency-key': 'k' }],
  ['a message that is incomplete', MESSAGES, {}],
  ['a thread on other lines', MESSAGES, { ...chat('chat-small'), max_tokens: 5, thread: { type: 'create' } }],
]

const admin = mountedAt('/admin', { tag: 'Admin', auth: 'admin' }, ADMIN_ENDPOINTS)
const described = [...CALLER_ENDPOINTS, ...admin].filter(({ answers }) =>
  answers.some(({ schema }) => schema),
)

let gateway: GatewayProcess
/** The ids of the objects that the tests create. */
const made = { call: '', ticket: '', video: '', operator: '', webhook: '', budget: '' }
const cleanUp = cleaningUp()
before(async () => {
  const database = await temporaryDatabase()
  cleanUp.after(database.remove)
  gateway = await startGatewayProcess({ ADMIN_TOKEN: TOKEN, DATABASE_URL: database.url })
  cleanUp.after(() => gateway.stop())
  await openSessions(database.url)
  const answer = await post(gateway.url, chat('chat-failover'), DEMO)
  await answer.arrayBuffer()
  made.call = answer.headers.get('x-request-id') ?? ''
  // An entry is there within a second.
  const isLogged = async () => (await fetch(`${gateway.url}/v1/calls/${made.call}`, { headers: DEMO })).ok
  await untilAsync(isLogged, 'the entry of the call')
  const { body } = await ask('post', '/v1/videos', VIDEO)
  made.video = (body as { id: string }).id
})

async function openSessions(databaseUrl: string): Promise<void> {
  const db = await openDatabase(databaseUrl, PATIENT)
  const store = new SqlSessionStore(db)
  for (const [id, secret] of Object.entries(SESSIONS)) {
    const operator = { name: `The ${id}`, roles: ['viewer'] as const, expiresAt: Date.now() + 3_600_000 }
    await store.open({ id, ...operator, secretHash: hashSecret(secret) }, originOf())
  }
  await db.destroy()
}

async function ask(
  method: string,
  path: string,
  sent?: object,
  credential: Record<string, string> = path.startsWith('/admin')
    ? { authorization: `Bearer ${TOKEN}` }
    : DEMO,
): Promise<{ status: number; body: unknown }> {
  const response = await fetch(gateway.url + path, {
    method: method.toUpperCase(),
    headers: {
      ...credential,
      'content-type': 'application/json',
    },
    ...(sent && { body: JSON.stringify(sent) }),
  })
  const body = await response.json()
  assert.ok(response.ok, `${method} ${path}: ${response.status} ${JSON.stringify(body)}`)
  return { status: response.status, body }
}

interface Part {
  readonly properties?: Readonly<Record<string, Part>>
  readonly items?: Part
  readonly anyOf?: readonly Part[]
}

/** Returns the members of an answer that its schema does not have. */
function unknownMembers(part: Part, value: unknown, path = ''): string[] {
  if (typeof value !== 'object' || value === null) return []
  const { properties, items } = part.anyOf?.[0] ?? part
  if (Array.isArray(value)) return value.flatMap((one) => unknownMembers(items ?? {}, one, `${path}[]`))
  // A record, such as tags.
  if (!properties) return []
  return Object.entries(value).flatMap(([name, member]) => {
    const known = properties[name]
    return known ? unknownMembers(known, member, `${path}.${name}`) : [`${path}.${name}`]
  })
}

/** Checks that an answer has the members of its schema, and no others. */
function assertIs(schema: z.ZodType, body: unknown): void {
  assert.equal(schema.safeParse(body).error, undefined)
  assert.deepEqual(unknownMembers(z.toJSONSchema(schema, { unrepresentable: 'any' }) as Part, body), [])
}

/** By the name of the operation: the id in its path, its body, and the name for the id in its answer. */
const rows: readonly [
  name: string,
  id?: (() => string) | undefined,
  body?: object | (() => object),
  of?: keyof typeof made,
][] = [
  // The video is ready some seconds after its request.
  ['getVideoTask', () => made.video],
  ['resolveVideoTask', () => made.video, { outcome: 'released' }],
  ['getHealth'],
  ['getReadiness'],
  ['listModels'],
  ['getModel', () => 'chat-failover'],
  ['getRouting', () => 'chat-failover'],
  ['getOwnAccount'],
  ['listCalls'],
  ['getCall', () => made.call],
  ['getOwnUsage'],
  ['createTicket', undefined, () => ({ request_id: made.call, message: 'Why?' }), 'ticket'],
  ['getTicket', () => made.ticket],
  ['listAccounts'],
  ['createAccount', undefined, { id: 'new' }],
  ['getAccount', () => 'demo'],
  ['changeAccount', () => 'demo', { name: 'Demo' }],
  ['deposit', () => 'demo', { amount: '1', reference: 'r' }],
  ['deposit', () => 'demo', { amount: '1', reference: 'r' }],
  ['adjustBalance', () => 'demo', ADJUSTMENT],
  ['adjustBalance', () => 'demo', ADJUSTMENT],
  ['listKeys'],
  ['createKey', undefined, { id: 'new', account: 'new' }],
  ['getKey', () => 'key_demo'],
  ['changeKey', () => 'key_demo', { expires_at: '2099-01-01T00:00:00Z' }],
  ['rotateKey', () => 'new'],
  ['deleteKey', () => 'new'],
  ['createOperator', undefined, { name: 'Ada', role: 'viewer' }, 'operator'],
  ['listOperators'],
  ['getOperator', () => made.operator],
  ['changeOperator', () => made.operator, { role: 'finance' }],
  ['rotateOperatorToken', () => made.operator],
  ['deleteOperator', () => made.operator],
  ['getSession'],
  ['listSessions'],
  ['endSession', () => 'other'],
  ['endOwnSession'],
  ['createWebhook', undefined, WEBHOOK, 'webhook'],
  ['listWebhooks'],
  ['rotateWebhook', () => made.webhook],
  ['listDeliveries', () => made.webhook],
  ['deleteWebhook', () => made.webhook],
  ['createBudget', undefined, BUDGET, 'budget'],
  ['listBudgets'],
  ['getBudget', () => made.budget],
  ['changeBudget', () => made.budget, { hard: false }],
  ['deleteBudget', () => made.budget],
  ['listDrift'],
  ['listLines'],
  ['getLine', () => 'demo-eu'],
  ['switchLine', () => 'demo-eu', { enabled: true }],
  ['listAllModels'],
  ['getAnyModel', () => 'chat-failover'],
  ['getAnyRouting', () => 'chat-failover'],
  ['listAllCalls'],
  ['getAnyCall', () => made.call],
  ['getUsage'],
  ['listTickets'],
  ['getAnyTicket', () => made.ticket],
  ['handleTicket', () => made.ticket, { reply: 'So it is.' }],
  ['listLeases'],
  ['checkLedger'],
  ['listVideoTasks'],
  ['listChanges'],
]

const credentialOf = (name: string) => (name === 'endOwnSession' ? OWN_SESSION : undefined)

describe('answers are what the document says', () => {
  for (const [name, id, body, of] of rows) {
    it(`${name} answers as its schema says`, async () => {
      const endpoint = described.find((one) => one.id === name)
      assert.ok(endpoint)
      const path = endpoint.path.replace(/\{\w+\}/, id?.() ?? '')
      const answer = await ask(
        endpoint.method,
        path,
        typeof body === 'function' ? body() : body,
        credentialOf(name),
      )
      const schema = endpoint.answers.find(({ status }) => status === answer.status)?.schema?.[1]
      assert.ok(schema, `${answer.status} is described`)
      assertIs(schema, answer.body)
      if (of) made[of] = (answer.body as { id: string }).id
    })
  }

  it('every endpoint whose answer has a schema is asked', () => {
    const tried = new Set(rows.map(([name]) => name))
    assert.deepEqual(
      described.map(({ id }) => id).filter((id) => !tried.has(id)),
      [],
    )
  })

  for (const [what, path, body, headers] of REFUSED)
    it(`a refusal answers as its schema says: ${what}`, async () => {
      const request = {
        method: 'POST',
        headers: { ...DEMO, 'content-type': 'application/json', ...headers },
        body: JSON.stringify(body),
      }
      await (await fetch(gateway.url + path, request)).arrayBuffer()
      const refused = await fetch(gateway.url + path, request)
      assert.ok(!refused.ok)
      assertIs(path === MESSAGES ? anthropicErrorEnvelope : errorEnvelope, await refused.json())
    })
})
