import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import type { Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { before, describe, it } from 'node:test'
import OpenAI from 'openai'
import { createProvider } from '../../examples/new-provider/provider.ts'
import { jsonOf } from '../support/answer-bodies.ts'
import { type AssembledGateway, assembledGateway } from '../support/assembled-gateway.ts'
import { type CleanUp, cleaningUp } from '../support/clean-up.ts'
import { chat, lookUp, post } from '../support/gateway-process.ts'

const CONFIG = new URL('../../examples/new-provider/gateway.json', import.meta.url)
const KEY = 'sk-acme-1'

describe('a provider that the gateway has never heard of', () => {
  let provider: Server
  let gateway: AssembledGateway
  const start = (t: CleanUp, orchardKey: string) => {
    const { port } = provider.address() as AddressInfo
    // As it stands, but for the port.
    const config = readFileSync(CONFIG, 'utf8').replace('127.0.0.1:4000', `127.0.0.1:${port}`)
    return assembledGateway(t, JSON.parse(config), { env: { ORCHARD_KEY: orchardKey } })
  }
  const cleanUp = cleaningUp()
  before(async () => {
    provider = createProvider({ key: 'orchard-secret', project: 'shop' })
    cleanUp.after(() => provider.closeAllConnections())
    cleanUp.after(() => provider.close())
    await new Promise<void>((resolve) => provider.listen(0, '127.0.0.1', resolve))
    gateway = await start(cleanUp, 'orchard-secret')
  })

  const ask = (url: string) =>
    post(url, chat('chat-small', 'Good morning'), { authorization: `Bearer ${KEY}` })

  it('serves callers who know nothing of it, by a config alone', async () => {
    const answer = await ask(gateway.url)
    assert.equal(answer.status, 200)
    const { choices } = await jsonOf<OpenAI.ChatCompletion>(answer)
    assert.equal(choices[0]?.message.content, 'An apple says: Good morning')
    const entry = await lookUp(gateway.url, answer.headers.get('x-request-id'), KEY)
    assert.deepEqual(
      entry.routing?.attempts.map(({ line, upstream_model }) => [line, upstream_model]),
      [['orchard', 'orchard/apple-7b-instruct@2026-01']],
    )
    // 8 tokens in at 0.10 and 5 out at 0.20 for a million.
    assert.equal(entry.billing?.charged, '0.0000018')
  })

  it('streams, to callers of the other protocol too', async () => {
    const client = new OpenAI({ apiKey: KEY, baseURL: `${gateway.url}/v1`, maxRetries: 0 })
    const streamed = await client.chat.completions.create({
      model: 'chat-small',
      messages: [{ role: 'user', content: 'Good morning' }],
      stream: true,
    })
    let said = ''
    for await (const { choices } of streamed) said += choices[0]?.delta.content ?? ''
    assert.equal(said, 'An apple says: Good morning')
    const message = await fetch(`${gateway.url}/v1/messages`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', 'x-api-key': KEY },
      body: JSON.stringify({ ...chat('chat-small', 'Good morning'), max_tokens: 100 }),
    })
    const { content } = await jsonOf<{ content: { text: string }[] }>(message)
    assert.equal(content[0]?.text, 'An apple says: Good morning')
  })

  it('is not asked for what it has not', async () => {
    const client = new OpenAI({ apiKey: KEY, baseURL: `${gateway.url}/v1`, maxRetries: 0 })
    await assert.rejects(client.completions.create({ model: 'chat-small', prompt: 'Good' }), /503/)
    assert.equal((await ask(gateway.url)).status, 200)
  })

  it('says in the trace, and not to the caller, that its key is wrong', async (t) => {
    const wrong = await start(t, 'another-secret')
    const answer = await ask(wrong.url)
    assert.equal(answer.status, 502)
    assert.doesNotMatch(await answer.text(), /orchard|who are you/)
    const { routing } = await lookUp(wrong.url, answer.headers.get('x-request-id'), KEY)
    assert.equal(routing?.attempts[0]?.upstream_status, 401)
  })
})
