import type { AddressInfo } from 'node:net'
import { LeasePool } from 'express-model-gateway'
import { openDatabase, SqlKeyDirectory, SqlLedger, seedAccountsAndKeys } from 'express-model-gateway/sql'
import { createApp } from './app.ts'

const { PORT = '3000', DATABASE_URL = 'sqlite:.data/prepaid.db', ADMIN_TOKEN } = process.env

const db = await openDatabase(DATABASE_URL)
// The reference makes this a single deposit: a restart does not repeat it.
await seedAccountsAndKeys(db, {
  accounts: [{ id: 'ann', balance: '0.01' }],
  keys: [
    { id: 'key_ann', account: 'ann', secret: 'sk-ann' },
    { id: 'key_trial', account: 'ann', secret: 'sk-trial', quota: '0.005' },
  ],
})
const ledger = new SqlLedger(db)
const pool = new LeasePool({ ledger })

const app = createApp({ keys: new SqlKeyDirectory(db), pool, books: ledger, adminToken: ADMIN_TOKEN })
const server = app.listen(Number(PORT), '127.0.0.1', () => {
  const origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  console.log(`tiles are for sale at ${origin}`)
  console.log(`  curl -s -D - -o tile.png ${origin}/tiles/0/0/0.png -H 'Authorization: Bearer sk-ann'`)
})

let stopping = false
for (const signal of ['SIGTERM', 'SIGINT'] as const) {
  process.on(signal, () => {
    if (stopping) return
    stopping = true
    server.close(async () => {
      // Writes the remaining charges and returns the leases.
      await pool.close()
      await db.destroy()
    })
  })
}
