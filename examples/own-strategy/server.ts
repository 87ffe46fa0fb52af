import type { AddressInfo } from 'node:net'
import { LineRegistry, loadConfig } from 'express-model-gateway'
import { startDemoModels } from '../gateway/demo-models/server.ts'
import { createApp } from './app.ts'

const { PORT = '3000' } = process.env

// Two providers of one model: `bargain` is slow, `express` costs four times as much.
const demo = await startDemoModels({ slowMs: 600 })
const line = (id: string, upstreamModel: string, outputPerMillion: string) => ({
  id,
  provider: id,
  protocol: 'openai' as const,
  baseUrl: `${demo.url}/v1`,
  apiKey: 'any',
  models: { 'chat-small': upstreamModel },
  price: { outputPerMillion },
})
const { catalog } = loadConfig({
  models: [{ id: 'chat-small', kind: 'chat' }],
  lines: [line('bargain', 'demo-slow', '0.10'), line('express', 'demo-chat', '0.40')],
})
const lines = new LineRegistry()

const server = createApp({ catalog, lines, boundMs: 300 }).listen(Number(PORT), '127.0.0.1', () => {
  const origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  console.log(`the cheapest line that answers within 300 ms is asked at ${origin}`)
  console.log(
    `  curl -s -D - ${origin}/v1/chat/completions -H 'Content-Type: application/json' -d '{"model":"chat-small","messages":[{"role":"user","content":"Hello!"}]}'`,
  )
})

process.once('SIGTERM', () => {
  server.close(async () => {
    await lines.close()
    await demo.close()
  })
})
