import type { AddressInfo } from 'node:net'
import { createProvider } from './provider.ts'

const { PROVIDER_PORT = '4000', ORCHARD_KEY = 'orchard-secret' } = process.env

const server = createProvider({ key: ORCHARD_KEY, project: 'shop' })
server.listen(Number(PROVIDER_PORT), '127.0.0.1', () => {
  console.log(`the provider listens on http://127.0.0.1:${(server.address() as AddressInfo).port}`)
})

process.once('SIGTERM', () => server.close())
