import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import express, { type Request } from 'express'
import request from 'supertest'
import { rateLimit } from '../../../lib/middleware/rate-limit/index.ts'
import { shop } from './shop-app.ts'

const userOf = (req: Request) => req.get('x-user')

describe('rateLimit alone in a plain Express app', () => {
  it('limits by address, and answers through Express itself', async () => {
    let handled = 0
    const app = express().set('env', 'test')
    app.use(rateLimit({ levels: [{ name: 'ip', by: (req) => req.ip, rpm: 2 }] }))
    app.get('/', (_req, res) => {
      handled++
      res.send('hello')
    })
    for (const remaining of ['1', '0']) {
      const answer = await request(app).get('/').expect(200, 'hello')
      assert.equal(answer.headers['x-ratelimit-remaining-requests'], remaining)
      assert.match(answer.headers['x-request-id'] as string, /^req_/)
    }
    const refused = await request(app).get('/').expect(429)
    assert.ok(Number(refused.headers['retry-after']) >= 1)
    assert.equal(refused.headers['x-ratelimit-remaining-requests'], '0')
    assert.equal(refused.headers['x-should-retry'], 'true')
    assert.match(refused.headers['x-request-id'] as string, /^req_/)
    assert.equal(handled, 2)
  })

  it('limits by address with a limit alone', async (t) => {
    const app = await shop(t, { limit: 2, windowMs: 1000 })
    const statuses: number[] = []
    for (let i = 0; i < 3; i++) statuses.push((await app.ask()).status)
    assert.deepEqual(statuses, [200, 200, 429])
    const levels = [{ name: 'all', by: () => 'all', rpm: 1 }]
    assert.throws(() => rateLimit({ limit: 2, levels }), /"limit" or "levels", not both/)
  })

  it('takes every limit as a value or as a function of the request', async () => {
    const app = express().set('env', 'test')
    app.use(
      rateLimit({
        levels: [
          {
            name: 'user',
            by: userOf,
            rpm: (req) => (req.get('x-plan') === 'pro' ? 3 : 1),
            tpm: () => null,
            concurrency: 10,
          },
          { name: 'site', by: () => 'all', rpm: 5 },
        ],
      }),
    )
    app.get('/', (_req, res) => void res.send('hello'))
    const ask = (user: string, plan = 'free') => request(app).get('/').set({ 'x-user': user, 'x-plan': plan })
    await ask('ann').expect(200)
    await ask('ann').expect(429)
    for (let i = 0; i < 3; i++) await ask('bob', 'pro').expect(200)
    await ask('bob', 'pro').expect(429)
    await ask('cay').expect(200)
    await ask('dan').expect(429)
  })

  it('does not apply a level to a request without its subject', async () => {
    const app = express().set('env', 'test')
    app.use(rateLimit({ levels: [{ name: 'user', by: userOf, rpm: 1 }] }))
    app.get('/', (_req, res) => void res.send('hello'))
    for (let i = 0; i < 5; i++) await request(app).get('/').expect(200)
    await request(app).get('/').set('x-user', 'ann').expect(200)
    await request(app).get('/').set('x-user', 'ann').expect(429)
  })

  it('counts tokens as the app does', async () => {
    const app = express().set('env', 'test')
    app.use(express.text())
    app.use(
      rateLimit({
        levels: [{ name: 'user', by: userOf, tpm: 10 }],
        tokens: (req) => String(req.body).length / 4,
      }),
    )
    app.post('/', (_req, res) => void res.send('hello'))
    const post = (text: string) => request(app).post('/').set('x-user', 'ann').type('text/plain').send(text)
    const first = await post('x'.repeat(21)).expect(200)
    assert.equal(first.headers['x-ratelimit-remaining-tokens'], '4')
    await post('x'.repeat(17)).expect(429)
    await post('x'.repeat(16)).expect(200)
    await post('x'.repeat(41)).expect(429, /never pass/)
  })

  it('keeps the counts of two of them apart', async () => {
    const app = express().set('env', 'test')
    const limits = () => rateLimit({ levels: [{ name: 'ip', by: (req: Request) => req.ip, rpm: 1 }] })
    app.get('/a', limits(), (_req, res) => void res.send('a'))
    app.get('/b', limits(), (_req, res) => void res.send('b'))
    await request(app).get('/a').expect(200)
    await request(app).get('/b').expect(200)
    await request(app).get('/a').expect(429)
  })
})
