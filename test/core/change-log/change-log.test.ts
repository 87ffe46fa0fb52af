import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { callOf, noteOperator } from '../../../lib/core/call/index.ts'
import { actorOf, changedSettings, changeOrigin } from '../../../lib/core/change-log/index.ts'
import { beginCall, errorEnvelope } from '../../../lib/index.ts'
import { envelopeIn } from '../../support/answer-bodies.ts'
import { type AppServer, recordingLogger, serveApp } from '../../support/app-server.ts'

describe('a change of settings', () => {
  const origin = { requestId: 'r', actor: 'ann', at: 5 }

  it('is recorded only if something has changed', () => {
    const settings = { before: { a: 1, b: [1] }, after: { a: 1, b: [1] } }
    assert.equal(changedSettings('key.changed', 'k', settings, origin), undefined)
    const changed = { before: { a: 1, b: [1] }, after: { a: 1, b: [2] } }
    assert.deepEqual(changedSettings('key.changed', 'k', changed, origin), {
      ...origin,
      ...changed,
      action: 'key.changed',
      subject: 'k',
    })
  })
})

describe('the origin of a change', () => {
  let app: AppServer
  before(async () => {
    app = await serveApp((app) => {
      app.use(beginCall())
      app.use((req, _res, next) => {
        const name = req.get('x-known')
        if (name !== undefined) noteOperator(req, { name: name || null, roles: ['admin'] })
        next()
      })
      app.get('/origin', (req, res) => {
        const call = callOf(req)
        const origin = changeOrigin(req, actorOf)
        res.json({ ...origin, isOfCall: origin.requestId === call.id && origin.at === call.startedAt })
      })
      app.use(errorEnvelope({ logger: recordingLogger() }))
    })
  })
  after(() => app.close())
  const ask = async (actor?: string, known?: string) => {
    const headers = {
      ...(actor !== undefined && { 'x-admin-actor': actor }),
      ...(known !== undefined && { 'x-known': known }),
    }
    const res = await fetch(`${app.url}/origin`, { headers })
    const body = (await res.json()) as { actor?: string; isOfCall?: boolean }
    return res.ok ? [body.actor, body.isOfCall] : [res.status, envelopeIn(body).error.message]
  }

  it('is the request, with the person that its header names', async () => {
    assert.deepEqual(await ask(), ['admin', true])
    assert.deepEqual(await ask('Ann ~'), ['Ann ~', true])
    assert.deepEqual(await ask('a'.repeat(200)), ['a'.repeat(200), true])
  })

  it('is the operator whose token or session sends the request, not the person in its header', async () => {
    for (const actor of [undefined, 'Ann', '', 'a'.repeat(201)])
      assert.deepEqual(await ask(actor, 'bob'), ['bob', true], actor)
    assert.deepEqual(await ask('Ann', ''), ['Ann', true], 'a token without a name')
    assert.deepEqual(await ask(undefined, ''), ['admin', true])
  })

  it('is refused if it is not readable', async () => {
    const refused = [400, 'The header X-Admin-Actor must be 1 to 200 printable ASCII characters.']
    for (const actor of ['', 'a'.repeat(201), 'é', 'a\tb']) assert.deepEqual(await ask(actor), refused)
  })
})
