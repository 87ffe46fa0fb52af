import assert from 'node:assert/strict'
import { afterEach, beforeEach, describe, it } from 'node:test'
import { type CallLogEntry, newRequestId } from '../../../lib/core/call/index.ts'
import type { ChangeLog } from '../../../lib/core/change-log/index.ts'
import { ticketRoutes } from '../../../lib/endpoints/tickets/index.ts'
import { adminTicketRoutes } from '../../../lib/management/index.ts'
import { authenticate, memoryKeyDirectory } from '../../../lib/middleware/authenticate/index.ts'
import { MemoryCallStore } from '../../../lib/middleware/call-log/index.ts'
import { errorEnvelope, unknownPath } from '../../../lib/middleware/error-envelope/index.ts'
import { openDatabase, SqlChangeLog, SqlTicketStore } from '../../../lib/stores/sql/index.ts'
import { envelopeOf, jsonOf } from '../../support/answer-bodies.ts'
import { type AppServer, serveApp } from '../../support/app-server.ts'
import { cleaningUp } from '../../support/clean-up.ts'

interface TicketBody {
  readonly id: string
  readonly status: string
  readonly reply: string | null
  readonly call?: CallLogEntry | null
  readonly created_at: string
  readonly updated_at: string
  readonly [member: string]: unknown
}

interface TicketList {
  readonly data: readonly TicketBody[]
  readonly next_cursor: string | null
}

let server: AppServer
let calls: MemoryCallStore
let changes: ChangeLog
const cleanUp = cleaningUp(afterEach)
beforeEach(async () => {
  calls = new MemoryCallStore()
  const db = await openDatabase('sqlite::memory:')
  cleanUp.after(() => db.destroy())
  changes = new SqlChangeLog(db)
  const store = new SqlTicketStore(db)
  const keys = memoryKeyDirectory({
    accounts: [{ id: 'acme' }, { id: 'globex' }],
    keys: [
      { id: 'key_acme', account: 'acme', secret: 'sk-acme' },
      { id: 'key_other', account: 'acme', secret: 'sk-other' },
      { id: 'key_globex', account: 'globex', secret: 'sk-globex' },
    ],
  })
  server = await serveApp((app) => {
    app.use('/desk', adminTicketRoutes({ store, calls }))
    app.use('/open', ticketRoutes({ store, calls, entryWithinMs: 0 }))
    app.use('/v1', authenticate({ keys }), ticketRoutes({ store, calls, entryWithinMs: 1000 }))
    app.use(unknownPath(), errorEnvelope())
  })
  cleanUp.after(() => server.close())
})

function ask(method: string, path: string, body?: unknown, key = 'sk-acme'): Promise<Response> {
  return fetch(server.url + path, {
    method,
    headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json', 'x-admin-actor': 'Ada' },
    ...(body !== undefined && { body: JSON.stringify(body) }),
  })
}

const entryOf = (account: string | null): CallLogEntry =>
  ({
    id: newRequestId(),
    object: 'call',
    account,
    created_at: new Date().toISOString(),
    response_body: 'secret',
  }) as CallLogEntry

async function loggedCall(account: string | null = 'acme'): Promise<CallLogEntry> {
  const entry = entryOf(account)
  await calls.append([entry])
  return entry
}

async function ticketOn(entry: CallLogEntry, message = 'Why?', key = 'sk-acme'): Promise<TicketBody> {
  const response = await ask('POST', '/v1/tickets', { request_id: entry.id, message }, key)
  assert.equal(response.status, 201)
  return jsonOf<TicketBody>(response)
}

describe('tickets of callers', () => {
  it('are made with the request id of a call, and found again', async () => {
    const entry = await loggedCall()
    const made = await ask('POST', '/v1/tickets', { request_id: entry.id, message: 'Why?' })
    assert.equal(made.status, 201)
    assert.equal(made.headers.get('cache-control'), 'private, no-store')
    const ticket = await jsonOf<TicketBody>(made)
    const { id, created_at, updated_at, ...rest } = ticket
    assert.deepEqual(rest, {
      object: 'ticket',
      account: 'acme',
      key: 'key_acme',
      request_id: entry.id,
      message: 'Why?',
      status: 'open',
      reply: null,
    })
    assert.match(id, /^tkt_[0-9a-z]{26}$/)
    assert.equal(created_at, updated_at)
    const found = await ask('GET', `/v1/tickets/${id}`, undefined, 'sk-other')
    assert.deepEqual(await jsonOf(found), ticket, 'every key of the account sees it')
  })

  it('are made on a call whose entry is still to be written', async () => {
    const entry = entryOf('acme')
    const asked = ask('POST', '/v1/tickets', { request_id: entry.id, message: 'Why?' })
    await new Promise((resolve) => setTimeout(resolve, 20))
    await calls.append([entry])
    assert.equal((await asked).status, 201)
  })

  it('are not made on calls of others, or that are not there', async () => {
    const ids = [(await loggedCall('globex')).id, (await loggedCall(null)).id, newRequestId()]
    for (const request_id of ids) {
      const refused = await ask('POST', '/v1/tickets', { request_id, message: 'Why?' })
      const { error } = await envelopeOf(refused)
      assert.deepEqual([refused.status, error.code, error.param], [404, 'not_found', undefined])
    }
    assert.deepEqual((await jsonOf<TicketList>(await ask('GET', '/desk/tickets'))).data, [])
  })

  it('of others are not there', async () => {
    const ticket = await ticketOn(await loggedCall())
    for (const path of [`/v1/tickets/${ticket.id}`, '/v1/tickets/tkt_1', '/v1/tickets/%00']) {
      const refused = await ask('GET', path, undefined, 'sk-globex')
      assert.deepEqual([refused.status, (await envelopeOf(refused)).error.code], [404, 'not_found'])
    }
  })

  it('need to know whose they are', async () => {
    const { id } = await loggedCall()
    for (const [method, path] of [
      ['POST', '/open/tickets'],
      ['GET', `/open/tickets/tkt_${id.slice(4)}`],
    ] as const) {
      const refused = await ask(
        method,
        path,
        method === 'POST' ? { request_id: id, message: 'm' } : undefined,
      )
      assert.equal((await envelopeOf(refused)).error.code, 'missing_credential')
    }
  })

  for (const [body, param] of [
    [{ message: 'Why?' }, 'request_id'],
    [{ request_id: 'req_1', message: 'Why?' }, 'request_id'],
    [{ request_id: 7, message: 'Why?' }, 'request_id'],
    [{ request_id: newRequestId(), message: 7 }, 'message'],
    [{ request_id: newRequestId(), message: 'x'.repeat(4001) }, 'message'],
    [{ request_id: newRequestId(), message: '\ud800' }, 'message'],
    [{ request_id: newRequestId(), message: 'm', status: 'closed' }, 'status'],
  ] as const) {
    it(`are refused where ${param} is wrong: ${JSON.stringify(body).slice(0, 60)}`, async () => {
      const refused = await ask('POST', '/v1/tickets', body)
      const { error } = await envelopeOf(refused)
      assert.deepEqual([refused.status, error.code, error.param], [400, 'invalid_request', param])
    })
  }
})

describe('the desk of tickets', () => {
  it('shows tickets newest first with the call beside each, by status and account', async () => {
    const entry = await loggedCall()
    const first = await ticketOn(entry)
    const second = await ticketOn(await loggedCall('globex'), 'And this?', 'sk-globex')
    const list = await jsonOf<TicketList>(await ask('GET', '/desk/tickets'))
    assert.deepEqual(
      list.data.map(({ id, call }) => [id, call?.account]),
      [
        [second.id, 'globex'],
        [first.id, 'acme'],
      ],
    )
    assert.deepEqual(list.data[1]?.call, { ...entry, response_body: null }, 'but for what was answered')
    const idsOf = async (query: string) =>
      (await jsonOf<TicketList>(await ask('GET', `/desk/tickets?${query}`))).data.map(({ id }) => id)
    assert.deepEqual(await idsOf('account=acme'), [first.id])
    assert.deepEqual(await idsOf('status=closed'), [])
    const page = await jsonOf<TicketList>(await ask('GET', '/desk/tickets?limit=1'))
    assert.deepEqual(await idsOf(`limit=1&cursor=${page.next_cursor}`), [first.id])
    for (const query of ['status=done', 'cursor=x', 'limit=0', 'account=a&account=b']) {
      assert.equal((await ask('GET', `/desk/tickets?${query}`)).status, 400, query)
    }
  })

  it('answers a ticket, which its caller sees, and records it', async () => {
    const entry = await loggedCall()
    const ticket = await ticketOn(entry)
    const answered = await ask('PATCH', `/desk/tickets/${ticket.id}`, { reply: 'The line was away.' })
    assert.equal(answered.status, 200)
    const { call, ...body } = await jsonOf<TicketBody>(answered)
    assert.deepEqual([body.status, body.reply, call?.id], ['answered', 'The line was away.', entry.id])
    assert.ok(body.updated_at >= ticket.updated_at)
    assert.deepEqual(await jsonOf(await ask('GET', `/v1/tickets/${ticket.id}`)), body)
    const closed = await jsonOf<TicketBody>(
      await ask('PATCH', `/desk/tickets/${ticket.id}`, { status: 'closed' }),
    )
    assert.deepEqual([closed.status, closed.reply], ['closed', 'The line was away.'])
    assert.deepEqual(
      (await changes.list({ limit: 9 }))
        .toReversed()
        .map(({ action, actor, subject, before, after }) => [action, actor, subject, before, after]),
      [
        [
          'ticket.changed',
          'Ada',
          ticket.id,
          { status: 'open', reply: null },
          { status: 'answered', reply: 'The line was away.' },
        ],
        [
          'ticket.changed',
          'Ada',
          ticket.id,
          { status: 'answered', reply: 'The line was away.' },
          { status: 'closed', reply: 'The line was away.' },
        ],
      ],
    )
  })

  it('shows a ticket whose call the log has forgotten', async () => {
    const ticket = await ticketOn(await loggedCall())
    await calls.prune(Date.now() + 60_000, 10)
    assert.deepEqual(await jsonOf(await ask('GET', `/desk/tickets/${ticket.id}`)), { ...ticket, call: null })
  })

  for (const [body, param] of [
    [{ status: 'done' }, 'status'],
    [{ status: null }, 'status'],
    [{ reply: '' }, 'reply'],
    [{ reply: 'x'.repeat(4001) }, 'reply'],
    [{ message: 'other' }, 'message'],
  ] as const) {
    it(`takes nothing else: ${JSON.stringify(body).slice(0, 60)}`, async () => {
      const ticket = await ticketOn(await loggedCall())
      const refused = await ask('PATCH', `/desk/tickets/${ticket.id}`, body)
      const { error } = await envelopeOf(refused)
      assert.deepEqual([refused.status, error.code, error.param], [400, 'invalid_request', param])
      assert.deepEqual(await changes.list({ limit: 9 }), [])
    })
  }

  it('has no ticket that is not there', async () => {
    for (const [method, path] of [
      ['PATCH', '/desk/tickets/tkt_1'],
      ['GET', '/desk/tickets/tkt_1'],
    ] as const) {
      const refused = await ask(method, path, method === 'PATCH' ? { status: 'closed' } : undefined)
      assert.deepEqual([refused.status, (await envelopeOf(refused)).error.code], [404, 'not_found'])
    }
  })
})
