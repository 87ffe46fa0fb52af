import assert from 'node:assert/strict'
import { it } from 'node:test'
import { type AdminServer, onEveryBackend } from '../admin-server.ts'

onEveryBackend('changes of keys over the admin API', (server) => {
  it('are recorded, newest first, by what was changed', async () => {
    const actor = { 'x-admin-actor': 'Ada' }
    const change: AdminServer['ask'] = (...request) => server().ask(...request)
    const made = await change('POST', '/admin/keys', { id: 'watched', account: 'acme' }, actor)
    await change('PATCH', '/admin/keys/watched', { enabled: false }, actor)
    await change('POST', '/admin/keys/watched/rotate')
    await change('DELETE', '/admin/keys/watched', undefined, actor)
    await change('PATCH', '/admin/accounts/acme', { name: 'Acme & Co' })
    const { body } = await server().ask('GET', '/admin/changes?subject=watched')
    const changes = body.data as unknown as { action: string; actor: string; id: string; object: string }[]
    assert.deepEqual(
      changes.map(({ action, actor, object }) => [action, actor, object]),
      [
        ['key.deleted', 'Ada', 'change'],
        ['key.rotated', 'admin', 'change'],
        ['key.changed', 'Ada', 'change'],
        ['key.created', 'Ada', 'change'],
      ],
    )
    assert.equal(changes.at(-1)?.id, made.headers.get('x-request-id'))
    const page = (await server().ask('GET', '/admin/changes?subject=watched&limit=3')).body
    const rest = (await server().ask('GET', `/admin/changes?subject=watched&cursor=${page.next_cursor}`)).body
    assert.deepEqual([...page.data, ...rest.data], body.data)
    const newest = (await server().ask('GET', '/admin/changes?limit=1')).body.data[0]
    assert.equal((newest as unknown as { subject: string }).subject, 'acme')
  })
})
