import type { AddressInfo } from 'node:net'
import { createApp } from './app.ts'

const server = createApp().listen(Number(process.env.PORT ?? 3000), '127.0.0.1', () => {
  const origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  console.log(`the shop is open at ${origin}`)
  console.log(
    `  curl ${origin}/api/summaries -H 'Authorization: Bearer sk-partner-1' -H 'Content-Type: application/json' -d '{"text":"One. Two."}'`,
  )
})
