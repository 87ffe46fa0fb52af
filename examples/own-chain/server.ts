import type { AddressInfo } from 'node:net'
import { LineRegistry, loadConfig } from 'express-model-gateway'
import { startDemoModels } from '../gateway/demo-models/server.ts'
import { createApp } from './app.ts'

const { PORT = '3000' } = process.env

// A stand-in for two providers; the first one always fails.
const demo = await startDemoModels()
const { catalog } = loadConfig({
  models: [{ id: 'chat-small', kind: 'chat' }],
  lines: ['demo-failing', 'demo-chat'].map((upstreamModel, priority) => ({
    id: `line-${priority}`,
    provider: 'demo',
    protocol: 'openai',
    baseUrl: `${demo.url}/v1`,
    apiKey: 'any',
    priority,
    models: { 'chat-small': upstreamModel },
  })),
})
const lines = new LineRegistry()
const tokens = new Map([
  ['ann-1', { name: 'ann', team: 'sales' }],
  ['bob-1', { name: 'bob', team: 'support' }],
])

const server = createApp({ catalog, lines, tokens }).listen(Number(PORT), '127.0.0.1', () => {
  const origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  console.log(`the company's models are at ${origin}`)
  console.log(
    `  curl ${origin}/v1/chat/completions -H 'Authorization: Bearer ann-1' -H 'Content-Type: application/json' -d '{"model":"chat-small","messages":[{"role":"user","content":"Hello!"}]}'`,
  )
})

process.once('SIGTERM', () => {
  server.close(async () => {
    await lines.close()
    await demo.close()
  })
})
