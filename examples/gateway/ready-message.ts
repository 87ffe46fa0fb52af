import type { AddressInfo } from 'node:net'
import { DEMO_KEY, DEMO_MODEL } from './demo-config.ts'
import type { Settings } from './settings.ts'

/** Prints the address of the gateway and, with the demo config, a first request to try. */
export function printReadyMessage({ address, family, port }: AddressInfo, settings: Settings): void {
  const origin = `http://${family === 'IPv6' ? `[${address}]` : address}:${port}`
  console.log(`express-model-gateway is ready at ${origin}`)
  if (settings.configFile !== undefined) return
  const body = JSON.stringify({ model: DEMO_MODEL, messages: [{ role: 'user', content: 'Hello!' }] })
  console.log('It uses the demo config, whose models answer by rule and are no AI. Try:')
  console.log(
    `  curl ${origin}/v1/chat/completions -H 'Authorization: Bearer ${DEMO_KEY}' -H 'Content-Type: application/json' -d '${body}'`,
  )
}
