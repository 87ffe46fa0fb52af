import assert from 'node:assert/strict'
import type { TestContext } from 'node:test'
import { loadConfig } from '../../../lib/core/config/index.ts'
import { OPERATIONS } from '../../../lib/core/operations/index.ts'
import { accountWallet, LeasePool, MemoryLedger } from '../../../lib/ledger/index.ts'
import { billingGuard } from '../../../lib/middleware/billing-guard/index.ts'
import { errorEnvelope } from '../../../lib/middleware/error-envelope/index.ts'
import { readRequest } from '../../../lib/middleware/read-request/index.ts'
import { route } from '../../../lib/middleware/route/index.ts'
import { serveChain } from '../../support/chain-server.ts'
import { bodyOf, type Exchange, type Mode, pathOf, readExchange } from '../../support/exchange.ts'
import { type LineStates, restingOn, shutFor } from './line-states.ts'

/** Of every line, in nano-units for each token. */
const INPUT = 1000n
const OUTPUT = 10_000n

/** The usage of a call, in tokens. */
export interface Used {
  readonly input_tokens: number
  readonly output_tokens: number
}

/** The price of tokens, in nano-units. */
export const priceOf = ({ input_tokens: input, output_tokens: output }: Used): bigint =>
  BigInt(input) * INPUT + BigInt(output) * OUTPUT

/** A chain that charges two accounts, x and y, over two lines with two models. */
export interface FaultGateway {
  /** Asks for the model "chat" as the account. */
  ask(account: 'x' | 'y', mode: Mode, extra?: object): Promise<Exchange>
  entry(exchange: Exchange): ReturnType<Awaited<ReturnType<typeof serveChain>>['entry']>
  /** The pairs of a model and an account that a line admits no call for, as `line model account`. */
  shut(): string[]
  /** The models of lines that rest, and for how long. */
  resting(): { on: string; rest_ms: number }[]
  lift(): void
  /** The amount that each account has spent, in nano-units, once nothing is held any more. */
  spent(): Promise<{ x: bigint; y: bigint }>
}

/**
 * Starts one; it is closed at the end of the test. A circuit opens at half of its calls.
 *
 * @param line further members of both lines.
 */
export async function faultGateway(
  t: TestContext,
  urls: readonly string[],
  minimumCalls: number,
  line: object = {},
): Promise<FaultGateway> {
  const circuit = { minimumCalls, errorPercent: 50, resetMs: 60_000 }
  const config = loadConfig({
    accounts: [{ id: 'x' }, { id: 'y' }],
    keys: ['x', 'y'].map((id) => ({ id: `k${id}`, account: id, secret: `sk-${id}` })),
    models: ['chat', 'other'].map((id) => ({ id, kind: 'chat', maxOutputTokens: 1000 })),
    lines: urls.map((url, i) => ({
      id: `line-${i}`,
      provider: `provider-${i}`,
      protocol: 'openai',
      baseUrl: `${url}/v1`,
      priority: i,
      models: { chat: 'up-chat', other: 'up-other' },
      price: { inputPerMillion: '1', outputPerMillion: '10' },
      circuit,
      ...line,
    })),
  })
  const { catalog, region, routing } = config
  const accounts = [
    { id: 'x', balance: '10' },
    { id: 'y', balance: '10' },
  ]
  const ledger = new MemoryLedger({ accounts, keys: [{ id: 'kx' }, { id: 'ky' }] })
  let pool: LeasePool | undefined
  const chain = await serveChain(config, (app, { lines, logger }) => {
    pool = new LeasePool({ ledger, logger })
    app.post(
      OPERATIONS.map(({ path }) => path),
      readRequest({ catalog }),
      billingGuard({ pool, catalog }),
      route({ catalog, lines, region, ...routing }),
    )
    app.use(errorEnvelope({ logger }))
  })
  t.after(async () => {
    await chain.close()
    await pool?.close()
  })
  const states: LineStates = { catalog, lines: chain.lines }
  return {
    async ask(account, mode, extra = {}) {
      const response = await fetch(chain.url + pathOf(mode), {
        method: 'POST',
        headers: { authorization: `Bearer sk-${account}`, 'content-type': 'application/json' },
        body: JSON.stringify({ ...bodyOf(mode), ...extra }),
      })
      return readExchange(response)
    },
    entry: ({ requestId }) => chain.entry(requestId),
    shut: () => shutFor(states, ['chat', 'other'], ['x', 'y']),
    resting: () => restingOn(states),
    lift: () => chain.lines.liftRests('line-0'),
    async spent() {
      await pool?.close()
      const { violations, leased } = await ledger.check()
      assert.deepEqual([violations, leased], [[], 0n])
      const [x, y] = await ledger.wallets([accountWallet('x'), accountWallet('y')])
      return { x: x?.spent ?? 0n, y: y?.spent ?? 0n }
    },
  }
}
