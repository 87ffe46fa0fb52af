import type { AddressInfo } from 'node:net'
import { DEMO_KEY, DEMO_MODEL } from './demo-config.ts'
import type { Settings } from './settings.ts'

/** Says, once, where the gateway is ready, and what to try where it runs on the demo config. */
export function announce({ address, family, port }: AddressInfo, settings: Settings): void {
  const origin = `http://${family === 'IPv6' ? `[${address}]` : address}:${port}`
  console.log(`express-model-gateway is ready at ${origin}`)
  if (settings.configFile !== undefined) return
  const body = JSON.stringify({ model: DEMO_MODEL, messages: [{ role: 'user', content: 'Hello!' }] })
  console.log('It runs on the demo config: its models answer by rule and are no AI. Try:')
  console.log(
    `  curl ${origin}/v1/chat/completions -H 'Authorization: Bearer ${DEMO_KEY}' -H 'Content-Type: application/json' -d '${body}'`,
  )
}
