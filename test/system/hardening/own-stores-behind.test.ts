import assert from 'node:assert/strict'
import { describe, it, type TestContext } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Express } from 'express'
import { type CallLogEntry, newRequestId } from '../../../lib/core/call/index.ts'
import { MemoryCallStore } from '../../../lib/core/call-store/index.ts'
import { accountRoutes } from '../../../lib/endpoints/account/index.ts'
import { callLogRoutes } from '../../../lib/endpoints/calls/index.ts'
import { MemoryTicketStore, ticketRoutes } from '../../../lib/endpoints/tickets/index.ts'
import { adminRoutes, adminTicketRoutes } from '../../../lib/management/index.ts'
import { authenticate } from '../../../lib/middleware/authenticate/index.ts'
import { beginCall } from '../../../lib/middleware/begin-call/index.ts'
import { errorEnvelope } from '../../../lib/middleware/error-envelope/index.ts'
import { SqlLineSwitchStore } from '../../../lib/stores/sql/index.ts'
import { sqlStores } from '../../management/admin-server.ts'
import { recordingLogger, serveApp } from '../../support/app-server.ts'
import {
  FAULTS,
  type FaultState,
  faultyForMine,
  isFailure,
  LATE_MS,
  noteUser,
  nothingUnhandled,
} from './own-store-faults.ts'

const REQUEST = newRequestId()
const TICKET = REQUEST.replace('req_', 'tkt_')

/** A line as the admin API lists it. */
const LINE = {
  id: 'a',
  provider: 'p',
  protocol: 'openai',
  region: null,
  enabled: true,
  priority: 0,
  weight: 1,
  availability: 'up',
  circuit: 'closed',
  retry_after_ms: null,
  rest_ms: 0,
  in_flight: 0,
  first_byte_ms: null,
  tokens_per_second: null,
  recent_attempts: 0,
  recent_failures: 0,
  error_share: null,
  rests: [],
  circuits: [],
} as const

/** All that endpoints beside the chain ask. */
async function ownStores(t: TestContext) {
  const { accounts, ledger, keys, changes, videoTasks, directory, db, close } = await sqlStores()
  t.after(close)
  const switches = new SqlLineSwitchStore(db)
  const lines = {
    list: async () => [LINE],
    refresh: async () => {},
  }
  const calls = new MemoryCallStore()
  const created_at = new Date().toISOString()
  await calls.append([{ id: REQUEST, object: 'call', account: 'acme', created_at } as CallLogEntry])
  return {
    accounts,
    ledger,
    keys,
    changes,
    videoTasks,
    switches,
    lines,
    calls,
    tickets: new MemoryTicketStore(),
    directory,
  }
}

type Stores = Awaited<ReturnType<typeof ownStores>>

/** Each operation, and a request that needs it. The `*` of a path or body is new each time. */
const OPERATIONS: readonly (readonly [
  store: keyof Stores,
  operation: string,
  request: string,
  body?: object,
])[] = [
  ['accounts', 'list', 'GET /admin/accounts'],
  ['accounts', 'find', 'GET /admin/accounts/acme'],
  ['accounts', 'create', 'POST /admin/accounts', { id: 'new-*' }],
  ['accounts', 'change', 'PATCH /admin/accounts/acme', { name: 'new *' }],
  ['accounts', 'deposit', 'POST /admin/accounts/acme/deposits', { amount: '1', reference: '*' }],
  ['ledger', 'wallets', 'GET /admin/accounts/acme'],
  ['ledger', 'wallets', 'GET /v1/account'],
  ['ledger', 'leases', 'GET /admin/leases'],
  ['keys', 'list', 'GET /admin/keys'],
  ['keys', 'find', 'GET /admin/keys/key_acme'],
  ['keys', 'create', 'POST /admin/keys', { account: 'acme' }],
  ['keys', 'change', 'PATCH /admin/keys/key_acme', { limits: { rpm: 5 } }],
  ['keys', 'rotate', 'POST /admin/keys/key_none/rotate'],
  ['keys', 'delete', 'DELETE /admin/keys/key_none'],
  ['lines', 'list', 'GET /admin/lines'],
  ['lines', 'refresh', 'PATCH /admin/lines/a', { enabled: true }],
  ['switches', 'lift', 'PATCH /admin/lines/a', { rests: [] }],
  ['switches', 'all', 'GET /admin/lines'],
  ['switches', 'set', 'PATCH /admin/lines/a', { enabled: false }],
  ['changes', 'list', 'GET /admin/changes'],
  ['videoTasks', 'list', 'GET /admin/video-tasks'],
  ['videoTasks', 'resolve', 'POST /admin/video-tasks/video_1/resolve', { outcome: 'released' }],
  ['calls', 'find', `GET /v1/calls/${REQUEST}`],
  ['calls', 'list', 'GET /v1/calls'],
  ['calls', 'list', 'POST /v1/tickets', { request_id: REQUEST, message: 'why?' }],
  ['tickets', 'add', 'POST /v1/tickets', { request_id: REQUEST, message: 'why?' }],
  ['tickets', 'find', `GET /v1/tickets/${TICKET}`],
  ['tickets', 'list', 'GET /admin/tickets'],
  ['tickets', 'change', `PATCH /admin/tickets/${TICKET}`, { status: 'closed' }],
]

describe('a store of the app behind an endpoint', { concurrency: 24 }, () => {
  nothingUnhandled()
  for (const [store, operation, request, body] of OPERATIONS) {
    it(`costs a request at most an error in time, whatever it does: ${store}.${operation} (${request})`, async (t) => {
      const state: FaultState = { fault: undefined }
      const ask = await serve(t, store, operation, state)
      const healthy = await ask('mine', request, body)
      // A call has one open ticket, and a second request gets its id.
      const expected = request === 'POST /v1/tickets' ? 409 : healthy.status
      for (const [what, fault] of Object.entries(FAULTS)) {
        state.fault = fault
        const [mine, other] = await Promise.all([ask('mine', request, body), ask('other', request, body)])
        assert.equal(other.status, expected, `${what}, somebody else: ${other.text}`)
        assert.ok(other.took < 5000, `${what}, somebody else waited ${other.took} ms`)
        assert.ok(mine.took < 15_000, `${what}, took ${mine.took} ms`)
        if (isFailure(what))
          assert.deepEqual([mine.status, mine.code], [500, 'internal_error'], `${what}: ${mine.text}`)
        await sleep(LATE_MS + 50)
        state.fault = undefined
        const { status } = await ask('mine', request, body)
        assert.equal(status, expected, `nothing is left of a store that ${what}`)
      }
    })
  }
})

let asked = 0

async function serve(t: TestContext, faulty: keyof Stores, operation: string, state: FaultState) {
  const healthy = await ownStores(t)
  const stores = { ...healthy, [faulty]: faultyForMine(healthy[faulty], operation, state) }
  const logger = recordingLogger()
  const server = await serveApp((app: Express) => {
    app.use(noteUser, beginCall({ logger }))
    const { switches, lines, calls, tickets: store, directory, ...admin } = stores
    app.use(
      '/admin',
      adminRoutes({
        ...admin,
        lines: {
          list: () => lines.list(),
          refresh: () => lines.refresh(),
          store: switches,
        },
      }),
    )
    app.use('/admin', adminTicketRoutes({ store, calls }))
    app.use('/v1', authenticate({ keys: directory, region: 'local' }))
    app.use('/v1', callLogRoutes({ store: calls }), ticketRoutes({ store, calls, entryWithinMs: 0 }))
    app.use('/v1', accountRoutes({ ledger: admin.ledger }))
    app.use(errorEnvelope())
  })
  t.after(() => server.close())
  return async (user: string, request: string, body?: object) => {
    const [method = '', path = ''] = request.replace('*', `${++asked}`).split(' ')
    const begun = performance.now()
    const response = await fetch(server.url + path, {
      method,
      signal: AbortSignal.timeout(20_000),
      headers: { 'x-user': user, authorization: 'Bearer sk-acme', 'content-type': 'application/json' },
      ...(body && { body: JSON.stringify(body).replaceAll('*', `${++asked}`) }),
    })
    const text = await response.text()
    const code: unknown = JSON.parse(text).error?.code
    return { status: response.status, code, text, took: performance.now() - begun }
  }
}
