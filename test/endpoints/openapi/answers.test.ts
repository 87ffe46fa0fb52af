import assert from 'node:assert/strict'
import { before, describe, it } from 'node:test'
import { z } from 'zod'
import { ADMIN_ENDPOINTS } from '../../../lib/endpoints/openapi/admin-endpoints.ts'
import { CALLER_ENDPOINTS } from '../../../lib/endpoints/openapi/caller-endpoints.ts'
import { anthropicErrorEnvelope, errorEnvelope } from '../../../lib/endpoints/openapi/error-schemas.ts'
import { cleaningUp } from '../../support/clean-up.ts'
import { chat, type GatewayProcess, post, startGatewayProcess } from '../../support/gateway-process.ts'
import { untilAsync } from '../../support/until.ts'

const TOKEN = 'admin-token-of-this-test'
const DEMO = { authorization: 'Bearer sk-demo' }
const WEBHOOK = { url: 'https://example.com/hooks', events: ['balance.low'] }
const BUDGET = { scope: { account: 'demo' }, amount: '50', period: 'month', soft: [0.5] }
const ADJUSTMENT = { amount: '-1', reference: 'a', reason: 'A mistake.' }
const VIDEO = { model: 'video-small', prompt: 'waves', seconds: '4' }

/** What is only there for those who signed in at a provider. */
const OF_SESSIONS = ['endOwnSession', 'endSession']

const CHAT = '/v1/chat/completions'
const MESSAGES = '/v1/messages'

/** What is refused, at least the second time. */
const REFUSED: readonly [what: string, path: string, body: object, headers?: Record<string, string>][] = [
  ['without a key', CHAT, {}, { authorization: '' }],
  ['a member that is missing', CHAT, { model: 'chat-small' }],
  ['a repetition', CHAT, chat('chat-small'), { 'idempotency-key': 'k' }],
  ['a message that is incomplete', MESSAGES, {}],
  ['a thread on other lines', MESSAGES, { ...chat('chat-small'), max_tokens: 5, thread: { type: 'create' } }],
]

const described = [...CALLER_ENDPOINTS, ...ADMIN_ENDPOINTS].filter(({ answers }) =>
  answers.some(({ schema }) => schema),
)

let gateway: GatewayProcess
/** The ids of what was made here. */
const made = { call: '', ticket: '', video: '', operator: '', webhook: '', budget: '' }
const cleanUp = cleaningUp()
before(async () => {
  gateway = await startGatewayProcess({ ADMIN_TOKEN: TOKEN })
  cleanUp.after(() => gateway.stop())
  const answer = await post(gateway.url, chat('chat-failover'), DEMO)
  await answer.arrayBuffer()
  made.call = answer.headers.get('x-request-id') ?? ''
  const { body } = await ask('post', '/v1/videos', VIDEO)
  made.video = (body as { id: string }).id
  // An entry is there within a second.
  const isLogged = async () => (await fetch(`${gateway.url}/v1/calls/${made.call}`, { headers: DEMO })).ok
  await untilAsync(isLogged, 'the entry of the call')
})

async function ask(method: string, path: string, sent?: object): Promise<{ status: number; body: unknown }> {
  const response = await fetch(gateway.url + path, {
    method: method.toUpperCase(),
    headers: {
      ...(path.startsWith('/admin') ? { authorization: `Bearer ${TOKEN}` } : DEMO),
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

/** The members of an answer of which its schema says nothing. */
function untold(part: Part, value: unknown, path = ''): string[] {
  if (typeof value !== 'object' || value === null) return []
  const { properties, items } = part.anyOf?.[0] ?? part
  if (Array.isArray(value)) return value.flatMap((one) => untold(items ?? {}, one, `${path}[]`))
  // What has names of its own, such as tags.
  if (!properties) return []
  return Object.entries(value).flatMap(([name, member]) => {
    const told = properties[name]
    return told ? untold(told, member, `${path}.${name}`) : [`${path}.${name}`]
  })
}

/** An answer must have what its schema says, and nothing of which it says nothing. */
function assertIs(schema: z.ZodType, body: unknown): void {
  assert.equal(schema.safeParse(body).error, undefined)
  assert.deepEqual(untold(z.toJSONSchema(schema, { unrepresentable: 'any' }) as Part, body), [])
}

/** By the name of the operation: the id in its path, its body, and what becomes of the id in its answer. */
const rows: readonly [
  name: string,
  id?: (() => string) | undefined,
  body?: object | (() => object),
  of?: keyof typeof made,
][] = [
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
  ['listRegions'],
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
  ['getVideoTask', () => made.video],
  ['resolveVideoTask', () => made.video, { outcome: 'released' }],
  ['listChanges'],
]

describe('answers are what the document says', () => {
  for (const [name, id, body, of] of rows) {
    it(name, async () => {
      const endpoint = described.find((one) => one.id === name)
      assert.ok(endpoint)
      const path = endpoint.path.replace(/\{\w+\}/, id?.() ?? '')
      const answer = await ask(endpoint.method, path, typeof body === 'function' ? body() : body)
      const schema = endpoint.answers.find(({ status }) => status === answer.status)?.schema?.[1]
      assert.ok(schema, `${answer.status} is described`)
      assertIs(schema, answer.body)
      if (of) made[of] = (answer.body as { id: string }).id
    })
  }

  it('all of them', () => {
    const tried = new Set([...rows.map(([name]) => name), ...OF_SESSIONS])
    assert.deepEqual(
      described.map(({ id }) => id).filter((id) => !tried.has(id)),
      [],
    )
  })

  for (const [what, path, body, headers] of REFUSED)
    it(`refusals too: ${what}`, async () => {
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
