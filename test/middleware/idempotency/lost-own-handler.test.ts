import assert from 'node:assert/strict'
import { createServer, request } from 'node:http'
import type { AddressInfo } from 'node:net'
import { describe, it, type TestContext } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import express, { type Request, type Response } from 'express'
import { errorEnvelope } from '../../../lib/middleware/error-envelope/index.ts'
import { idempotency, MemoryIdempotencyStore } from '../../../lib/middleware/idempotency/index.ts'
import { recordingLogger } from '../../support/app-server.ts'
import { until } from '../../support/until.ts'

const LARGE = 'x'.repeat(200_000)

/** Ways in which a handler gives a success; `lose` takes its claim away and resolves when that is as far as it shall be. */
const ANSWERS: Record<string, (res: Response, lose: () => Promise<void>) => Promise<unknown>> = {
  'at once': async (res, lose) => {
    await lose()
    res.json({ ok: true })
  },
  'with a large body': async (res, lose) => {
    await lose()
    res.end(LARGE)
  },
  'with nothing': async (res, lose) => {
    await lose()
    res.status(204).end()
  },
  'with its length first': async (res, lose) => {
    res.writeHead(200, { 'content-length': '6' })
    res.write('one')
    await lose()
    res.write('two')
    await sleep(50)
    res.end()
  },
  'with all of its length, and no end': async (res, lose) => {
    await lose()
    res.writeHead(200, { 'content-length': '3' })
    res.write('one')
  },
  'in chunks': async (res, lose) => {
    res.write('one')
    await lose()
    res.end('two')
  },
  'as events': async (res, lose) => {
    res.writeHead(200, { 'content-type': 'text/event-stream' })
    res.write('data: 1\n\n')
    await lose()
    res.end('data: [DONE]\n\n')
  },
}

/** A store whose records a test may take over, as another process does. */
class TakenStore extends MemoryIdempotencyStore {
  #claim = { id: '', owner: '' }

  override claim(given: Parameters<MemoryIdempotencyStore['claim']>[0]) {
    if (given.owner !== 'thief') this.#claim = given
    return super.claim(given)
  }

  async takeOver(): Promise<void> {
    const now = Date.now() + 1e9
    const thief = { ...this.#claim, owner: 'thief', fingerprint: 'f', now, leaseUntil: now + 60_000 }
    assert.equal(await super.claim(thief), undefined)
  }

  /** The record has expired and is gone. */
  async expire(): Promise<void> {
    await super.release(this.#claim)
  }
}

/** The ways in which the loss of a claim is noticed. */
const NOTICED = {
  'its renewal notices': { leaseMs: 400, lose: (store: TakenStore) => store.takeOver() },
  'its end notices': { leaseMs: 60_000, lose: (store: TakenStore) => store.takeOver() },
  'its end notices that the record has expired': {
    leaseMs: 60_000,
    lose: (store: TakenStore) => store.expire(),
  },
} as const

describe('an own handler whose claim is lost', { concurrency: true }, () => {
  for (const [who, { leaseMs, lose }] of Object.entries(NOTICED)) {
    for (const [how, answer] of Object.entries(ANSWERS)) {
      it(`ends in an error where ${who} and it answers ${how}`, async (t) => {
        const store = new TakenStore()
        const logger = recordingLogger()
        const port = await serve(t, { store, logger, claimLeaseMs: leaseMs }, async (_req, res) => {
          await answer(res, async () => {
            await lose(store)
            if (leaseMs < 1000) await until(() => logger.lines.length > 0, 'the renewal')
          })
        })
        const got = await ask(port)
        assert.ok(got.broken || got.status >= 400, `${got.status} ${got.body.slice(0, 200)}`)
        if (!got.broken) assert.match(got.body, /"code":"idempotency_key_in_use"/)
        else if (how === 'as events') assert.match(got.body, /"code":"idempotency_key_in_use"/)
        assert.doesNotMatch(got.body, /DONE|two/)
      })
    }
  }

  it('is as good as any where its claim is not lost', async (t) => {
    for (const answer of Object.values(ANSWERS)) {
      const store = new TakenStore()
      const port = await serve(t, { store, logger: recordingLogger() }, (_req, res) =>
        answer(res, async () => {}),
      )
      const got = await ask(port)
      assert.ok(!got.broken && got.status < 300)
    }
  })
})

async function serve(
  t: TestContext,
  options: Parameters<typeof idempotency>[0],
  handler: (req: Request, res: Response) => Promise<unknown>,
): Promise<number> {
  const app = express()
  app.post('/', idempotency({ storeTimeoutMs: 10_000, ...options }), handler)
  app.use(errorEnvelope({ logger: recordingLogger() }))
  const server = createServer(app)
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  t.after(() => {
    server.close()
    server.closeAllConnections()
  })
  return (server.address() as AddressInfo).port
}

function ask(port: number): Promise<{ status: number; body: string; broken: boolean }> {
  return new Promise((resolve) => {
    const headers = { 'idempotency-key': 'k' }
    const sent = request({ port, method: 'POST', path: '/', headers }, (res) => {
      let body = ''
      const length = Number(res.headers['content-length'] ?? Number.NaN)
      const done = (broken: boolean) => resolve({ status: res.statusCode ?? 0, body, broken })
      res.setEncoding('latin1').on('data', (text: string) => {
        body += text
        if (body.length === length) done(false)
      })
      res.on('end', () => done(!res.complete)).on('error', () => done(true))
    })
    sent.on('error', () => resolve({ status: 0, body: '', broken: true })).end()
  })
}
