import assert from 'node:assert/strict'
import { describe, it, type TestContext } from 'node:test'
import { parseAmount } from '../../../lib/core/catalog/index.ts'
import { MAX_AMOUNT } from '../../../lib/core/catalog/money.ts'
import { accountWallet, type Ledger, type LedgerAdmin, MemoryLedger } from '../../../lib/ledger/index.ts'
import { openDatabase, SqlLedger, seedAccountsAndKeys } from '../../../lib/stores/sql/index.ts'
import { BACKENDS } from '../../stores/sql/support/postgres-database.ts'
import { PATIENT } from '../../stores/sql/support/temporary-database.ts'
import { cleaningUp } from '../../support/clean-up.ts'
import { readExchange } from '../../support/exchange.ts'
import { KEY } from '../../support/gateway.ts'
import { chatAnswer, startUpstream } from '../../support/scripted-upstream.ts'
import { billedGateway } from './billed-gateway.ts'

type Books = Ledger & LedgerAdmin
type Account = { readonly balance?: string; readonly quota?: string }

const ENGINES = [
  {
    name: 'memory',
    skip: false,
    ledger: async (_: TestContext, { balance, quota }: Account): Promise<Books> =>
      new MemoryLedger({ accounts: [{ id: 'acme', balance }], keys: [{ id: 'key_acme', quota }] } as never),
  },
  ...BACKENDS.map(({ name, url, skip }) => ({
    name,
    skip,
    ledger: async (t: TestContext, { balance, quota }: Account): Promise<Books> => {
      const db = await openDatabase(await url(t), PATIENT)
      t.after(() => db.destroy())
      await seedAccountsAndKeys(db, {
        accounts: [{ id: 'acme', ...(balance !== undefined && { balance }) }],
        keys: [{ id: 'key_acme', account: 'acme', secret: KEY, ...(quota !== undefined && { quota }) }],
      })
      return new SqlLedger(db)
    },
  })),
]

/** The most of a currency that 64 bits hold, as the price of a million tokens. */
const DEAREST = '9223372035'
/** Tokens that a call asks for, and that its line reports: the charge may be more than what was held. */
const CALLS: readonly (readonly [asked: number, reported: number])[] = [
  [1, 1],
  [999_999, 10],
  [1_000_001, 10],
  [9_000_000, 9_000_000],
  [10, 2_000_000],
  [500_000, 500_000],
  [500_000, 500_000],
  [500_000, 500_000],
  [1, 1],
]

for (const { name, skip, ledger: open } of ENGINES)
  describe(`amounts that 64 bits do not hold, in ${name}`, { skip }, async () => {
    const cleanUp = cleaningUp()
    let reported = 0
    const upstream = await startUpstream((res) =>
      chatAnswer(res, 'Hello', { usage: { prompt_tokens: 1, completion_tokens: reported } }),
    )
    cleanUp.after(() => upstream.close())

    for (const account of [{}, { balance: '9000000000' }, { balance: '5', quota: '5' }])
      it(`are charged by no ledger, and the account goes on: ${JSON.stringify(account)}`, async (t) => {
        const ledger = await open(t, account)
        const price = { outputPerMillion: DEAREST }
        const gateway = await billedGateway(t, {
          ledger,
          lines: [{ url: upstream.url, price, models: { chat: 'u' } }],
          model: { price: {}, maxOutputTokens: 10_000_000 },
        })
        let charged = 0n
        let served = 0
        for (const [asked, told] of CALLS) {
          reported = told
          const messages = [{ role: 'user', content: 'Hi' }]
          const got = await readExchange(
            await gateway.post('/v1/chat/completions', { model: 'chat', messages, max_tokens: asked }),
          )
          const { billing } = await gateway.entry(got.requestId)
          if (got.status !== 200) {
            assert.equal(got.status, 402, got.text)
            continue
          }
          charged += parseAmount(billing?.charged ?? '')
          served++
          assert.ok(charged <= MAX_AMOUNT)
        }
        const [wallet] = await ledger.wallets([accountWallet('acme')])
        assert.equal(wallet?.spent, charged, 'every answer that was served is charged')
        assert.equal((await gateway.books()).charges, served)
      })
  })
