import assert from 'node:assert/strict'
import { afterEach, beforeEach, describe, it } from 'node:test'
import { cleaningUp } from '../../support/clean-up.ts'
import { type AdminServer, serveAdmin, sqlStores } from '../admin-server.ts'

let server: AdminServer
const cleanUp = cleaningUp(afterEach)
beforeEach(async () => {
  server = await serveAdmin(await sqlStores())
  cleanUp.after(() => server.close())
})

/** Oldest first. */
const recorded = async () => (await server.changes.list({ limit: 99 })).toReversed()

describe('a change by an operator', () => {
  it('is recorded with its request, the time, and who the header says it was', async () => {
    const started = Date.now()
    const actor = { 'x-admin-actor': 'Ada <ada@example.com>' }
    const made = await server.ask('POST', '/admin/accounts', { id: 'new' }, actor)
    const changed = await server.ask('PATCH', '/admin/accounts/new', { name: 'New' })
    const paid = await server.ask(
      'POST',
      '/admin/accounts/new/deposits',
      { amount: '5', reference: 'r' },
      actor,
    )
    const changes = await recorded()
    assert.deepEqual(
      changes.map(({ action, actor, subject, requestId }) => [action, actor, subject, requestId]),
      [
        ['account.created', 'Ada <ada@example.com>', 'new', made.headers.get('x-request-id')],
        ['account.changed', 'admin', 'new', changed.headers.get('x-request-id')],
        ['account.deposited', 'Ada <ada@example.com>', 'new', paid.headers.get('x-request-id')],
      ],
    )
    for (const { at } of changes) assert.ok(at >= started && at <= Date.now())
  })

  it('is not recorded where it was refused, or changed nothing', async () => {
    await server.ask('GET', '/admin/accounts')
    await server.ask('POST', '/admin/accounts', { id: 'acme' })
    await server.ask('PATCH', '/admin/accounts/acme', { name: 'Acme' })
    await server.ask('PATCH', '/admin/accounts/nobody', { name: 'Acme' })
    await server.ask('POST', '/admin/accounts/acme/deposits', { amount: '-5', reference: 'r' })
    assert.deepEqual(await recorded(), [])
  })

  it('is not done for an actor that cannot be written down', async () => {
    for (const actor of ['x'.repeat(201), 'tab\there']) {
      const answer = await server.ask('POST', '/admin/accounts', { id: 'new' }, { 'x-admin-actor': actor })
      assert.deepEqual([answer.status, answer.body.error.code], [400, 'invalid_request'])
    }
    assert.equal((await server.ask('GET', '/admin/accounts/new')).status, 404)
    assert.deepEqual(await recorded(), [])
  })
})
