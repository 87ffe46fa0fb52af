import assert from 'node:assert/strict'
import { it } from 'node:test'
import { callOf } from '../../../lib/core/call/index.ts'
import { limitedApp } from './limited-app.ts'

it('a later middleware counts further requests of a call, all or none, without a slot', async (t) => {
  const app = await limitedApp(t, {
    keyRpm: 5,
    rpm: 8,
    concurrency: 1,
    handler: async (req, res, next) => {
      const refusal = await callOf(req).limits?.consumeRequests(Number(req.query.more))
      if (refusal) next(refusal())
      else res.json({})
    },
  })
  const ask = async (more: number, key = 'k1') =>
    (await app.ask({ key, path: `/v1/chat?more=${more}` })).status
  assert.equal(await ask(2), 200)
  assert.equal(await ask(2), 429, 'one is left of the key')
  assert.equal(app.calls.at(-1)?.limit?.level, 'key')
  assert.equal(await ask(4, 'k2'), 429, 'three are left of the account')
  assert.equal(app.calls.at(-1)?.limit?.level, 'account')
  assert.equal(await ask(2, 'k2'), 200, 'what was refused has counted nothing')
  assert.equal(await ask(0, 'k2'), 429)
})

it('a call without limits has none to count against', async (t) => {
  const app = await limitedApp(t, { handler: (req, res) => void res.json({ limits: callOf(req).limits }) })
  assert.deepEqual((await app.ask()).body, { limits: null })
})
