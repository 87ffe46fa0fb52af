import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import request from 'supertest'
import { createApp } from '../../examples/existing-app/app.ts'

const app = createApp()
const post = (key?: string) => {
  const call = request(app).post('/api/summaries')
  return key === undefined ? call : call.set('authorization', `Bearer ${key}`)
}

describe('an existing app with two middlewares', () => {
  it('serves its own pages without a key', async () => {
    await request(app)
      .get('/')
      .expect(200, /A shop/)
    await request(app).get('/orders/1').expect(200)
  })

  it('keeps its own error page', async () => {
    const answer = await request(app).get('/orders/2').expect(500)
    assert.match(answer.text, /<h1>Sorry<\/h1>/)
  })

  it('asks for a key below /api, in the error envelope', async () => {
    const answer = await post().send({ text: 'One. Two.' }).expect(401)
    assert.equal(answer.body.error.code, 'missing_credential')
    assert.equal(answer.body.request_id, answer.headers['x-request-id'])
  })

  it('refuses an expired key', async () => {
    const answer = await post('sk-partner-0').send({ text: 'One. Two.' }).expect(403)
    assert.equal(answer.body.error.code, 'key_expired')
  })

  it('lets a valid key through to a handler that knows the account', async () => {
    const answer = await post('sk-partner-1').send({ text: 'One. Two.' }).expect(200)
    assert.deepEqual(answer.body, { for: 'partner', summary: 'One' })
  })

  it("words express.json()'s own error alike", async () => {
    const answer = await post('sk-partner-1')
      .set('content-type', 'application/json')
      .send('{"text":')
      .expect(400)
    assert.equal(answer.body.error.code, 'invalid_request')
  })
})
