import { once } from 'node:events'
import { openDatabase, SqlCallStore, seedAccountsAndKeys } from 'express-model-gateway/sql'

/*
 * A process of its own at a shared database: says "ready", waits for the start signal, does its task and says what
 * came of it. `seed`: opens (and so migrates) and seeds. `write`: appends batches for ever, saying each that is done.
 */

const [task, url] = process.argv.slice(2) as ['seed' | 'write', string]
// The import that only this task needs takes a third of a start.
const entries = task === 'write' ? await import('../../contracts/call-store.ts') : undefined
process.stdout.write('ready\n')
await once(process.stdin, 'data')
process.stdin.destroy()

// Eight of these begin at the same moment, on what may be a busy machine.
const db = await openDatabase(url, { connectTimeoutMs: 30_000, statementTimeoutMs: 30_000 })
if (entries === undefined) {
  const numbers = Array.from({ length: 50 }, (_, i) => i)
  const seeded = await seedAccountsAndKeys(db, {
    accounts: numbers.map((i) => ({ id: `a${i}` })),
    keys: numbers.map((i) => ({ id: `k${i}`, account: `a${i}`, secret: `sk-${i}` })),
  })
  process.stdout.write(`${JSON.stringify(seeded)}\n`)
  // No destroy: an open database must not keep a process alive.
} else {
  const store = new SqlCallStore(db)
  for (;;) {
    const batch = Array.from({ length: 4000 }, () => entries.entryAt(Date.now()))
    await store.append(batch)
    process.stdout.write(`${batch[0]!.id}\n`)
  }
}
