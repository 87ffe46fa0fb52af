import { openDatabase, SqlUsageCounter } from 'express-model-gateway/sql'

/* A process that counts what was charged before usage was counted. Says "open" before, and "counted" behind. */

const db = await openDatabase(process.argv[2] as string)
process.stdout.write('open\n')
// The counter keeps no process alive.
const alive = setInterval(() => {}, 60_000)
const counter = new SqlUsageCounter(db)
await counter.counted()
process.stdout.write('counted\n')
await counter.close()
clearInterval(alive)
await db.destroy()
