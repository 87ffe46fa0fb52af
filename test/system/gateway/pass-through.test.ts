import assert from 'node:assert/strict'
import { once } from 'node:events'
import { connect } from 'node:net'
import { before, describe, it } from 'node:test'
import OpenAI, { toFile } from 'openai'
import { OpenAIRealtimeWS } from 'openai/realtime/ws'
import { WebSocket } from 'ws'
import { envelopeOf } from '../../support/answer-bodies.ts'
import { rawClient } from '../../support/app-server.ts'
import { cleaningUp } from '../../support/clean-up.ts'
import { type GatewayProcess, lookUp, startGatewayProcess } from '../../support/gateway-process.ts'

let gateway: GatewayProcess
let client: OpenAI
const cleanUp = cleaningUp()
before(async () => {
  gateway = await startGatewayProcess()
  cleanUp.after(() => gateway.stop())
  client = new OpenAI({ apiKey: 'sk-demo', baseURL: `${gateway.url}/v1`, maxRetries: 0 })
})

describe('the OpenAI SDK at the assembled gateway', () => {
  it('uploads, lists, reads and deletes files', async () => {
    const content = Buffer.from('line one\nline two\n'.repeat(50_000))
    const file = await client.files.create({ file: await toFile(content, 'notes.txt'), purpose: 'user_data' })
    assert.deepEqual([file.bytes, file.filename, file.purpose], [content.length, 'notes.txt', 'user_data'])
    const listed = await client.files.list()
    assert.ok(listed.data.some(({ id }) => id === file.id))
    assert.equal((await client.files.retrieve(file.id)).id, file.id)

    const { data: whole, request_id } = await client.files.content(file.id).withResponse()
    assert.deepEqual(Buffer.from(await whole.arrayBuffer()), content)
    const entry = await lookUp(gateway.url, request_id)
    assert.deepEqual(
      [entry.outcome, entry.routing?.attempts[0]?.line, entry.billing?.charged],
      ['completed', 'demo-us', '0.0001'],
    )
    const part = await client.files.content(file.id, { headers: { range: 'bytes=9-16' } })
    assert.deepEqual([part.status, await part.text()], [206, 'line two'])

    assert.equal((await client.files.delete(file.id)).deleted, true)
    await assert.rejects(client.files.content(file.id), (error: unknown) => {
      assert.ok(error instanceof OpenAI.NotFoundError)
      assert.equal(error.code, 'not_found')
      return true
    })
  })

  it('speaks, and transcribes what was spoken', async () => {
    const speech = await client.audio.speech.create({
      model: 'demo',
      voice: 'alloy',
      input: 'Hello there, world',
      response_format: 'wav',
    })
    assert.equal(speech.headers.get('content-type'), 'audio/wav')
    const sound = Buffer.from(await speech.arrayBuffer())
    assert.equal(sound.toString('latin1', 0, 4), 'RIFF')
    assert.equal(sound.readUInt32LE(4), sound.length - 8)
    const { text } = await client.audio.transcriptions.create({
      model: 'demo',
      file: await toFile(sound, 'hello.wav'),
    })
    assert.match(text, new RegExp(`${sound.length} bytes of hello\\.wav`))
  })

  it('holds a realtime session', async () => {
    // The SDK insists on wss; the gateway under test has no certificate.
    const options = { createConnection: () => connect(Number(new URL(gateway.url).port), '127.0.0.1') }
    const realtime = new OpenAIRealtimeWS({ model: 'demo-realtime', options }, client)
    const said = Promise.withResolvers<string>()
    realtime.on('error', said.reject)
    realtime.on('session.created', () => {
      realtime.send({
        type: 'conversation.item.create',
        item: { type: 'message', role: 'user', content: [{ type: 'input_text', text: 'Good morning' }] },
      })
      realtime.send({ type: 'response.create' })
    })
    realtime.on('response.output_text.done', ({ text }) => said.resolve(text))
    assert.match(await said.promise, /demo.*Good morning/)
    realtime.close()
    await once(realtime.socket, 'close')
  })
})

describe('a browser at the assembled gateway', () => {
  it('sends its key as a subprotocol', async () => {
    const socket = new WebSocket(`${gateway.url.replace('http', 'ws')}/v1/realtime?model=demo-realtime`, [
      'realtime',
      'openai-insecure-api-key.sk-demo',
    ])
    const [[response], [created]] = await Promise.all([once(socket, 'upgrade'), once(socket, 'message')])
    assert.equal(JSON.parse(String(created)).type, 'session.created')
    socket.close()
    await once(socket, 'close')
    const entry = await lookUp(gateway.url, response.headers['x-request-id'])
    assert.deepEqual([entry.status, entry.outcome, entry.billing?.charged], [101, 'completed', '0.01'])
  })
})

describe('other requests at the assembled gateway', () => {
  it('may offer an upgrade to something else, and are answered as what they are', async () => {
    const { port } = new URL(gateway.url)
    const body = '{"model":"chat-small","messages":[{"role":"user","content":"Hi"}]}'
    const raw = rawClient(
      Number(port),
      `POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nConnection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABk\r\nAuthorization: Bearer sk-demo\r\nContent-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n${body}`,
    )
    await raw.until('chat.completion')
    raw.socket.destroy()
  })

  it('are not_found where no rule lists their path', async () => {
    const response = await fetch(`${gateway.url}/v1/batches`, {
      headers: { authorization: 'Bearer sk-demo' },
    })
    assert.equal((await envelopeOf(response)).error.code, 'not_found')
  })
})
