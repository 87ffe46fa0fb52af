import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { assembledGateway } from '../support/assembled-gateway.ts'
import { cleaningUp } from '../support/clean-up.ts'
import { chatAnswer, startUpstream } from '../support/scripted-upstream.ts'

const HOUR_MS = 3_600_000

describe('while a call runs, a clock that is set', async () => {
  const cleanUp = cleaningUp()
  let jump = (): void => {}
  const upstream = await startUpstream(async (res) => {
    await new Promise((resolve) => setTimeout(resolve, 30))
    jump()
    chatAnswer(res)
  })
  cleanUp.after(() => upstream.close())
  const line = {
    id: 'l',
    provider: 'p',
    protocol: 'openai',
    baseUrl: `${upstream.url}/v1`,
    models: { m: 'u' },
  }

  for (const ms of [-24 * HOUR_MS, -HOUR_MS, HOUR_MS, 24 * HOUR_MS])
    it(`by ${ms} ms does not show in how long it took`, async (t) => {
      const gateway = await assembledGateway(cleanUp, { models: [{ id: 'm', kind: 'chat' }], lines: [line] })
      const now = Date.now.bind(Date)
      let by = 0
      t.mock.method(Date, 'now', () => now() + by)
      jump = () => {
        by = ms
      }
      const body = { model: 'm', messages: [{ role: 'user', content: 'Hi' }] }
      const response = await gateway.send('/v1/chat/completions', body)
      assert.equal(response.status, 200, await response.text())
      by = 0
      const { duration_ms: took } = await gateway.entryOf(response)
      assert.ok(took >= 25 && took < HOUR_MS / 2, `${took} ms`)
    })
})
