/**
 * A prepaid API without models: it draws map tiles, and the price of a tile depends on the steps that drawing it took.
 * `billingGuard` holds the most that a tile can cost before it is drawn. The answer ends once its true cost is written.
 */

import express, { type Express, type Request, type Response } from 'express'
import {
  authenticate,
  billingGuard,
  callOf,
  errorEnvelope,
  GatewayError,
  type KeyDirectory,
  type LeasePool,
  unknownPath,
} from 'express-model-gateway'
import { adminAccess } from 'express-model-gateway/admin'
import { formatAmount, isAmount, parseAmount } from 'express-model-gateway/catalog'
import { accountWallet, type LedgerAdmin } from 'express-model-gateway/ledger'
import { encodePng } from '../gateway/demo-models/png.ts'
import { drawTile, mostSteps, readTile, TILE_SIZE } from './tile.ts'

/** Options of {@link createApp}. */
export interface AppOptions {
  /** The API keys and their accounts. */
  keys: KeyDirectory
  /** The pool that pays for calls. */
  pool: LeasePool
  /** Deposits and balances of the same ledger. */
  books: LedgerAdmin
  /** The operator's token for deposits; without it there are no deposits. */
  adminToken: string | undefined
}

const PER_TILE = parseAmount('0.001')
const PER_MILLION_STEPS = parseAmount('0.0002')
const MAX_DEPOSIT = parseAmount('1000000')

/** Converts to nano-units, rounded half up. */
function priceOf(steps: number): bigint {
  return PER_TILE + (BigInt(steps) * PER_MILLION_STEPS + 500_000n) / 1_000_000n
}

/** Creates the app. */
export function createApp({ keys, pool, books, adminToken }: AppOptions): Express {
  const app = express()
  // With ETags, a caller would pay for a 304.
  app.disable('etag')
  const customers = authenticate({ keys })

  const asked = ({ params, query }: Request) =>
    readTile(params as Record<'z' | 'x' | 'y', string>, query.detail)
  const paid = billingGuard({ pool, reserve: (req) => priceOf(mostSteps(asked(req))) })
  app.get('/tiles/:z/:x/:y.png', customers, paid, async (req, res) => {
    const call = callOf(req)
    const { pixels, steps } = await drawTile(asked(req))
    // A caller who has left gets no tile and pays nothing. What was held is free at once.
    if (call.left) {
      res.end()
      return
    }
    const price = priceOf(steps)
    call.charge(price)
    res
      .set('x-price', formatAmount(price))
      .type('png')
      .send(await encodePng(pixels, TILE_SIZE))
  })

  app.get('/balance', customers, async (req, res) => {
    await answerBalance(res, callOf(req).principal?.accountId ?? '')
  })

  app.post(
    '/accounts/:id/deposits',
    adminAccess({ token: adminToken }),
    express.json(),
    async (req: Request<{ id: string }>, res) => {
      const { id } = req.params
      const { amount, reference } = readDeposit(req.body)
      // A deposit opens its account. The check prevents that a typo opens one.
      if ((await books.wallets([accountWallet(id)])).length === 0) throw new GatewayError('not_found')
      const came = await books.deposit(id, amount, reference, Date.now())
      if (came === 'conflict') throw new GatewayError('conflict')
      res.status(came === 'deposited' ? 201 : 200)
      await answerBalance(res, id)
    },
  )

  app.use(unknownPath(), errorEnvelope())
  return app

  async function answerBalance(res: Response, account: string): Promise<void> {
    const [wallet] = await books.wallets([accountWallet(account)])
    if (!wallet) throw new GatewayError('not_found')
    const { funds, spent, leased } = wallet
    res.json({ account, balance: formatAmount(funds - spent), leased: formatAmount(leased) })
  }
}

/** @throws {GatewayError} `invalid_request` with the invalid member as `param`. */
function readDeposit(body: unknown): { amount: bigint; reference: string } {
  const { amount, reference } = (body ?? {}) as Record<string, unknown>
  const nanos = typeof amount === 'string' && isAmount(amount) ? parseAmount(amount) : 0n
  if (nanos <= 0n || nanos > MAX_DEPOSIT) {
    throw new GatewayError('invalid_request', {
      param: 'amount',
      message: '"amount" must be a positive decimal in quotes, such as "5.00", and at most "1000000".',
    })
  }
  if (typeof reference !== 'string' || !/^[\x21-\x7e]{1,100}$/.test(reference)) {
    throw new GatewayError('invalid_request', {
      param: 'reference',
      message: '"reference" must name the payment, such as "invoice-1001": the same one counts once.',
    })
  }
  return { amount: nanos, reference }
}
