import assert from 'node:assert/strict'
import { describe, it, type TestContext } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Express, Request } from 'express'
import { loadConfig } from '../../../lib/core/config/index.ts'
import { OPERATIONS } from '../../../lib/core/operations/index.ts'
import { modelRoutes } from '../../../lib/endpoints/models/index.ts'
import { LeasePool, MemoryLedger } from '../../../lib/ledger/index.ts'
import { authenticate, memoryKeyDirectory } from '../../../lib/middleware/authenticate/index.ts'
import { beginCall } from '../../../lib/middleware/begin-call/index.ts'
import { billingGuard } from '../../../lib/middleware/billing-guard/index.ts'
import { errorEnvelope, unknownPath } from '../../../lib/middleware/error-envelope/index.ts'
import { idempotency } from '../../../lib/middleware/idempotency/index.ts'
import { MemoryLimitStore, rateLimit } from '../../../lib/middleware/rate-limit/index.ts'
import { readRequest } from '../../../lib/middleware/read-request/index.ts'
import { route } from '../../../lib/middleware/route/index.ts'
import type { Candidate } from '../../../lib/routing/candidates/candidate.ts'
import { recordingLogger, serveApp } from '../../support/app-server.ts'
import { chatAnswer, startUpstream } from '../../support/scripted-upstream.ts'
import {
  type FaultState,
  FUNCTION_FAULTS,
  LATE_MS,
  noteUser,
  nothingUnhandled,
  withFault,
} from './own-store-faults.ts'

const CHAT = OPERATIONS.find(({ path }) => path === '/v1/chat/completions') as (typeof OPERATIONS)[number]

/** Every function of the chain whose answer a call needs, as it works without a fault. */
const WORKING = {
  by: (req: Request) => `${req.headers['x-user']}`,
  skip: () => false,
  rpm: () => 1000,
  tokens: () => 1,
  concurrency: () => 1,
  estimateTokens: (text: string) => text.length,
  operation: () => CHAT,
  owner: (req: Request) => `${req.headers['x-user']}`,
  reserve: () => '0.01',
  account: (req: Request) => `${req.headers['x-user']}`,
  key: () => null,
  strategy: (candidates: readonly Candidate[]) => candidates,
  refuseEarly: () => undefined,
  lineStatus: () => ({ id: 'l' }),
}

type Name = keyof typeof WORKING | 'catalog'

/** The answers of FAULTS that are right for each function. */
const RIGHT: Partial<Record<Name, readonly string[]>> = {
  by: ['answers null', 'answers a text'],
  skip: ['answers null', 'answers true late'],
  rpm: ['answers null'],
  concurrency: ['answers null'],
  owner: ['answers a text'],
  account: ['answers a text'],
  key: ['answers null', 'answers a text'],
}

/** Functions that may return a promise. */
const MAY_WAIT: ReadonlySet<string> = new Set(['by', 'skip', 'rpm', 'tokens', 'concurrency', 'refuseEarly'])

describe('a function of the app', { concurrency: 24 }, () => {
  nothingUnhandled()

  for (const name of [...Object.keys(WORKING), 'catalog'] as Name[]) {
    for (const [what, fault] of Object.entries(FUNCTION_FAULTS)) {
      it(`costs its call an error and nothing else: ${name} ${what}`, async (t) => {
        const state: FaultState = { fault: undefined }
        const ask = await serve(t, name, state)
        assert.equal((await ask('mine')).status, 200, 'before')
        state.fault = fault
        for (let i = 0; i < 2; i++) {
          const [mine, other] = await Promise.all([ask('mine'), ask('other')])
          assert.equal(other.status, 200, `somebody else: ${other.text}`)
          const isRight = RIGHT[name]?.includes(what) === true
          assert.equal(mine.status, isRight ? 200 : 500, mine.text)
          if (!isRight) assert.match(mine.text, /"internal_error"/)
          assert.ok(mine.took < (MAY_WAIT.has(name) ? 13_000 : 3000), `took ${mine.took} ms`)
        }
        await sleep(LATE_MS + 50)
        state.fault = undefined
        // A slot, a claim or money that was left behind would refuse it.
        assert.equal((await ask('mine')).status, 200, 'nothing is left of it')
      })
    }
  }
})

/** A chain of all middlewares, one of whose functions goes wrong in the calls of the user "mine". */
async function serve(t: TestContext, name: Name, state: FaultState) {
  const upstream = await startUpstream((res) => chatAnswer(res))
  t.after(() => upstream.close())
  const users = ['mine', 'other']
  const { catalog, keys, accounts } = loadConfig({
    accounts: users.map((id) => ({ id })),
    keys: users.map((id) => ({ id: `key_${id}`, account: id, secret: `sk-${id}` })),
    models: [{ id: 'chat', kind: 'chat' }],
    lines: [
      { id: 'l', provider: 'p', protocol: 'openai', baseUrl: `${upstream.url}/v1`, models: { chat: 'u' } },
    ],
  })
  const own = withFault({ ...WORKING, catalog: () => catalog }, name, state)
  const logger = recordingLogger()
  const ledger = new MemoryLedger({
    accounts: users.map((id) => ({ id, balance: '0.01' })),
    unknownAccounts: 'postpaid',
  })
  const pool = new LeasePool({ ledger, logger })
  t.after(() => pool.close())
  const { by, rpm, concurrency } = own
  const server = await serveApp((app: Express) => {
    app.use(noteUser, beginCall({ logger }))
    app.use(authenticate({ keys: memoryKeyDirectory({ accounts, keys }) }))
    const limits = rateLimit({
      levels: [{ name: 'user', by, rpm, tpm: 100_000, concurrency }],
      tokens: own.tokens,
      skip: own.skip,
      store: new MemoryLimitStore(),
    })
    const { estimateTokens, operation, owner, reserve, account, key, strategy, refuseEarly } = own
    app.post(
      '/v1/chat/completions',
      readRequest({ catalog: own.catalog, estimateTokens, operation, before: [{ refuseEarly }] }),
      limits,
      idempotency({ by: owner, logger }),
      billingGuard({ pool, reserve, account, key }),
      route({ catalog: own.catalog, strategy }),
    )
    app.use('/v1', modelRoutes({ catalog: own.catalog, lineStatus: own.lineStatus }))
    app.use(unknownPath(), errorEnvelope())
  })
  t.after(() => server.close())
  let asked = 0
  return async (user: string) => {
    const begun = performance.now()
    const headers = {
      'x-user': user,
      authorization: `Bearer sk-${user}`,
      'content-type': 'application/json',
      // A request with a key is not refused early.
      ...(name !== 'refuseEarly' && { 'idempotency-key': `${user}-${++asked}` }),
    }
    // Large enough to ask the later middlewares before it is read.
    const messages = [{ role: 'user', content: 'word '.repeat(4000) }]
    const body = JSON.stringify({ model: 'chat', messages })
    const response = await (name === 'lineStatus'
      ? fetch(`${server.url}/v1/models/chat/routing`, { headers })
      : fetch(`${server.url}/v1/chat/completions`, { method: 'POST', headers, body }))
    return { status: response.status, text: await response.text(), took: performance.now() - begun }
  }
}
