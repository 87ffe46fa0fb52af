import type { AddressInfo } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import KeyvRedis from '@keyv/redis'
import { createApp } from './app.ts'

const { PORT = '3000', REDIS_URL } = process.env

// The cache logs when Redis goes away and when it is back.
const store = REDIS_URL === undefined ? undefined : new KeyvRedis(REDIS_URL)

const translate = async (text: string): Promise<string> => {
  // A service that takes its time.
  await sleep(1000)
  return text.toUpperCase()
}

const server = createApp({ ...(store && { store }), translate }).listen(Number(PORT), '127.0.0.1', () => {
  const origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  console.log(`the phrase book is open at ${origin}, its answers are kept in ${store ? 'Redis' : 'memory'}`)
  const headers = `-H 'X-User: ann' -H 'Content-Type: application/json'`
  console.log(
    `  for i in 1 2; do curl -si ${origin}/translations ${headers} -d '{"text":"hello"}'; echo; done`,
  )
})

process.once('SIGTERM', () => {
  server.close(() => void store?.disconnect(true))
})
