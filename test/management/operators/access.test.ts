import assert from 'node:assert/strict'
import { afterEach, describe, it } from 'node:test'
import { adminAccess } from '../../../lib/management/index.ts'
import { errorEnvelope } from '../../../lib/middleware/error-envelope/index.ts'
import { envelopeOf } from '../../support/answer-bodies.ts'
import { type AppServer, serveApp } from '../../support/app-server.ts'

const TOKEN = 'correct-horse-battery-staple'

let server: AppServer | undefined
let passed = 0
afterEach(async () => {
  await server?.close()
  passed = 0
})

async function ask(token: string | undefined, headers: Record<string, string>): Promise<Response> {
  server = await serveApp((app) => {
    app.use('/admin', adminAccess({ token }), (_req, res) => {
      passed++
      res.json({ passed })
    })
    app.use(errorEnvelope())
  })
  return fetch(`${server.url}/admin/accounts`, { headers })
}

describe('access to the admin API', () => {
  for (const authorization of [`Bearer ${TOKEN}`, `bearer   ${TOKEN}`]) {
    it(`is had with "${authorization.replace(TOKEN, '<token>')}"`, async () => {
      const response = await ask(TOKEN, { authorization })
      assert.equal(response.status, 200)
      assert.equal(passed, 1)
    })
  }

  for (const headers of [{}, { authorization: 'Bearer' }, { 'x-api-key': TOKEN }]) {
    it(`is refused without a token: ${JSON.stringify(headers).replace(TOKEN, '<token>')}`, async () => {
      const response = await ask(TOKEN, headers)
      assert.equal(response.status, 401)
      const { error, request_id } = await envelopeOf(response)
      assert.deepEqual([error.code, error.type], ['missing_credential', 'authentication_error'])
      assert.equal(request_id, response.headers.get('x-request-id'))
      assert.equal(response.headers.get('x-should-retry'), 'false')
      assert.equal(passed, 0)
    })
  }

  for (const [what, authorization] of [
    ['another token', 'Bearer wrong'],
    ['a part of the token', `Bearer ${TOKEN.slice(0, -1)}`],
    ['more than the token', `Bearer ${TOKEN}x`],
    ['the token twice', `Bearer ${TOKEN} ${TOKEN}`],
    ['the token in other letters', `Bearer ${TOKEN.toUpperCase()}`],
    ['another scheme', `Basic ${Buffer.from(`admin:${TOKEN}`).toString('base64')}`],
    ['no scheme', TOKEN],
    ['a very long token', `Bearer ${'x'.repeat(10_000)}`],
  ] as const) {
    it(`is refused with ${what}`, async () => {
      const response = await ask(TOKEN, { authorization })
      assert.equal(response.status, 401)
      const text = await response.text()
      assert.equal(JSON.parse(text).error.code, 'invalid_credential')
      assert.ok(!text.includes(TOKEN))
      assert.equal(passed, 0)
    })
  }

  for (const token of [undefined, '']) {
    it(`does not exist without a token, whatever is sent: ${JSON.stringify(token)}`, async () => {
      const answers: unknown[] = []
      for (const headers of [{}, { authorization: 'Bearer' }, { authorization: 'Bearer undefined' }]) {
        const response = await ask(token, headers)
        answers.push([response.status, (await envelopeOf(response)).error.code])
        await server?.close()
      }
      assert.deepEqual(answers, Array(3).fill([404, 'not_found']))
      assert.equal(passed, 0)
    })
  }

  it('takes no token that a header cannot carry', () => {
    for (const token of ['two words', 'tökén', 'line\nbreak', ' ']) {
      assert.throws(() => adminAccess({ token }), TypeError)
    }
  })
})
