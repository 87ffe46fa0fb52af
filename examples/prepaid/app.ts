/**
 * An API that is paid for in advance and has nothing to do with models: it draws map tiles, and a tile costs what
 * drawing it took. `billingGuard` holds the most that a tile can cost before it is drawn, and the answer ends once what
 * it did cost is written.
 */

import express, { type Express, type Request, type Response } from 'express'
import {
  adminAccess,
  authenticate,
  billingGuard,
  callOf,
  errorEnvelope,
  GatewayError,
  type KeyDirectory,
  type LeasePool,
  type LedgerBooks,
  unknownPath,
} from 'express-model-gateway'
import { formatAmount, isAmount, parseAmount } from 'express-model-gateway/catalog'
import { accountWallet } from 'express-model-gateway/ledger'
import { encodePng } from './png.ts'
import { drawTile, mostSteps, readTile, TILE_SIZE } from './tile.ts'

/** What the app needs from outside. */
export interface AppOptions {
  /** Who may call, and for which account. */
  keys: KeyDirectory
  /** What calls are paid from. */
  pool: LeasePool
  /** Deposits and balances of the same ledger. */
  books: LedgerBooks
  /** What the operator sends to deposit money; without it nobody can. */
  adminToken: string | undefined
}

const PER_TILE = parseAmount('0.001')
const PER_MILLION_STEPS = parseAmount('0.0002')
const LARGEST_DEPOSIT = parseAmount('1000000')

/** Nano-units, rounded half up. */
function priceOf(steps: number): bigint {
  return PER_TILE + (BigInt(steps) * PER_MILLION_STEPS + 500_000n) / 1_000_000n
}

/** Puts the app together. */
export function createApp({ keys, pool, books, adminToken }: AppOptions): Express {
  const app = express()
  // A caller who has the tile already would be answered 304, and pay for it again.
  app.disable('etag')
  const customers = authenticate({ keys })

  const asked = ({ params, query }: Request) =>
    readTile(params as Record<'z' | 'x' | 'y', string>, query.detail)
  const paid = billingGuard({ pool, reserve: (req) => priceOf(mostSteps(asked(req))) })
  app.get('/tiles/:z/:x/:y.png', customers, paid, async (req, res) => {
    const call = callOf(req)
    const { pixels, steps } = await drawTile(asked(req))
    // Who has gone does not get the tile, and does not pay for it; what was held for it is free as soon as this is said.
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
      // A deposit opens the account it names; a typing error is not to open one.
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

/** @throws {GatewayError} `invalid_request` naming the member that is wrong. */
function readDeposit(body: unknown): { amount: bigint; reference: string } {
  const { amount, reference } = (body ?? {}) as Record<string, unknown>
  const nanos = typeof amount === 'string' && isAmount(amount) ? parseAmount(amount) : 0n
  if (nanos <= 0n || nanos > LARGEST_DEPOSIT) {
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
