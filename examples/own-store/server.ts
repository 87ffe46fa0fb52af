import type { AddressInfo } from 'node:net'
import { createApp } from '../rate-limit-only/app.ts'
import { SqliteLimitStore } from './sqlite-limit-store.ts'

const { PORT = '3000', LIMITS_FILE = '.data/limits.db' } = process.env

const store = new SqliteLimitStore({ file: LIMITS_FILE })
const server = createApp({ store }).listen(Number(PORT), '127.0.0.1', () => {
  const origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  console.log(`the shop is open at ${origin}, its counts are in ${LIMITS_FILE}`)
  console.log(`  for i in 1 2 3 4 5 6; do curl -s -D - ${origin}/search -H 'X-User: ann'; echo; done`)
})

process.once('SIGTERM', () => server.close(() => store.close()))
