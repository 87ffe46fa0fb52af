import type { AddressInfo } from 'node:net'
import type { Addresses } from './addresses.ts'
import { DEMO_KEY, DEMO_MODEL } from './demo-config.ts'
import type { Settings } from './settings.ts'

/** Prints the addresses of the gateway and, with the demo config, a first request to try. */
export function printReadyMessage({ callers, admin }: Addresses, settings: Settings): void {
  const origin = originOf(callers)
  if (admin) console.log(`The console, /admin and /metrics are at ${originOf(admin)}`)
  console.log(`express-model-gateway is ready at ${origin}`)
  if (settings.configFile !== undefined) return
  const body = JSON.stringify({ model: DEMO_MODEL, messages: [{ role: 'user', content: 'Hello!' }] })
  console.log('It uses the demo config, whose models answer by rule and are no AI. Try:')
  console.log(
    `  curl ${origin}/v1/chat/completions -H 'Authorization: Bearer ${DEMO_KEY}' -H 'Content-Type: application/json' -d '${body}'`,
  )
}

function originOf({ address, family, port }: AddressInfo): string {
  return `http://${family === 'IPv6' ? `[${address}]` : address}:${port}`
}
