import assert from 'node:assert/strict'
import crypto from 'node:crypto'
import { syncBuiltinESMExports } from 'node:module'
import { describe, it } from 'node:test'
import { adminAccess } from '../../../lib/management/index.ts'
import { authenticate, hashSecret, memoryKeyDirectory } from '../../../lib/middleware/authenticate/index.ts'
import { beginCall } from '../../../lib/middleware/begin-call/index.ts'
import { errorEnvelope } from '../../../lib/middleware/error-envelope/index.ts'
import { serveApp } from '../../support/app-server.ts'

// How long something takes depends on the machine. What is tested is that the same work is done whatever was sent.

const SECRET = 'sk-acme-0123456789abcdef'
const TOKEN = 'admin-token-0123456789'

/** The same secret, nearly. */
const GUESSES = [
  SECRET,
  SECRET.slice(0, -1),
  `${SECRET.slice(0, -1)}x`,
  `x${SECRET.slice(1)}`,
  'sk-',
  'x'.repeat(500),
  SECRET.toUpperCase(),
]

describe('an API key', () => {
  it('is looked up once, by its hash, whether there is such a key or not', async (t) => {
    const seed = { accounts: [{ id: 'acme' }], keys: [{ id: 'k', account: 'acme', secret: SECRET }] }
    const directory = memoryKeyDirectory(seed)
    const asked: unknown[][] = []
    const keys = {
      find(...given: [string]) {
        asked.push(given)
        return directory.find(...given)
      },
    }
    const app = await serveApp((express) => {
      express.use(beginCall(), authenticate({ keys, cacheKeysMs: 0 }))
      express.get('/', (_req, res) => void res.end('fine'))
      express.use(errorEnvelope())
    })
    t.after(() => app.close())
    for (const guess of GUESSES) {
      const response = await fetch(app.url, { headers: { authorization: `Bearer ${guess}` } })
      assert.equal(response.status, guess === SECRET ? 200 : 401)
    }
    assert.deepEqual(
      asked,
      GUESSES.map((guess) => [hashSecret(guess)]),
    )
    for (const [hash] of asked) assert.match(String(hash), /^[0-9a-f]{64}$/)
  })

  it('that is unknown is refused in the same words as one that is nearly right', async (t) => {
    const seed = { accounts: [{ id: 'acme' }], keys: [{ id: 'k', account: 'acme', secret: SECRET }] }
    const app = await serveApp((express) => {
      express.use(beginCall(), authenticate({ keys: memoryKeyDirectory(seed) }), errorEnvelope())
    })
    t.after(() => app.close())
    const told = new Set<string>()
    for (const guess of GUESSES.slice(1)) {
      const response = await fetch(app.url, { headers: { authorization: `Bearer ${guess}` } })
      const id = String(response.headers.get('x-request-id'))
      told.add((await response.text()).replace(id, ''))
    }
    assert.equal(told.size, 1)
  })
})

describe('the admin token', () => {
  it('is compared in full, as digests of one length, whatever was sent', async (t) => {
    const lengths: [number, number][] = []
    const { timingSafeEqual } = crypto
    t.mock.method(crypto, 'timingSafeEqual', (a: Buffer, b: Buffer) => {
      lengths.push([a.length, b.length])
      return timingSafeEqual(a, b)
    })
    syncBuiltinESMExports()
    t.after(() => syncBuiltinESMExports())
    const app = await serveApp((express) => {
      express.use(beginCall(), adminAccess({ token: TOKEN }))
      express.get('/', (_req, res) => void res.end('fine'))
      express.use(errorEnvelope())
    })
    t.after(() => app.close())
    const guesses = [TOKEN, TOKEN.slice(0, -1), `${TOKEN}x`, 'x', 'x'.repeat(5000)]
    for (const guess of guesses) {
      const response = await fetch(app.url, { headers: { authorization: `Bearer ${guess}` } })
      assert.equal(response.status, guess === TOKEN ? 200 : 401)
    }
    const none = await fetch(app.url)
    assert.equal(none.status, 401)
    assert.deepEqual(
      lengths,
      guesses.map(() => [32, 32]),
    )
  })
})
