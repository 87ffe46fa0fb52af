import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { withRetries } from '../../lib/client/index.ts'
import { eventually } from '../support/app-server.ts'
import { ANSWER, answering, cutAfter, fine, post } from './scripted-answers.ts'

const soon = { firstDelayMs: 1 }
const SSE = 'text/event-stream'

describe('an answer that is interrupted', () => {
  it('in the middle of its JSON is requested again, and no part of it is returned before', async (t) => {
    const server = await answering(t, cutAfter('{"object":"chat.comp'), fine)
    const response = await withRetries(fetch, soon)(server.url, post())
    assert.deepEqual(await response.json(), ANSWER)
    assert.equal(server.sent.length, 2)
  })

  it('before the first byte of its stream is requested again', async (t) => {
    const server = await answering(t, cutAfter('', SSE), (res) => {
      res.writeHead(200, { 'content-type': SSE }).end('data: [DONE]\n\n')
    })
    const response = await withRetries(fetch, soon)(server.url, post())
    assert.equal(await response.text(), 'data: [DONE]\n\n')
    assert.equal(server.sent.length, 2)
  })

  it('after a stream has begun is never requested again, and the reader receives the error', async (t) => {
    const server = await answering(t, cutAfter('data: {"a":1}\n\n', SSE))
    const retries: unknown[] = []
    const send = withRetries(fetch, { ...soon, onRetry: (event) => retries.push(event) })
    const response = await send(server.url, post())
    const reader = response.body!.getReader()
    assert.equal(new TextDecoder().decode((await reader.read()).value), 'data: {"a":1}\n\n')
    await assert.rejects(reader.read(), TypeError)
    assert.equal(server.sent.length, 1)
    assert.deepEqual(retries, [])
  })

  it('of any other kind goes through as it comes', async (t) => {
    for (const type of ['video/mp4', 'multipart/related; type="application/json"', 'x-text/event-stream']) {
      const server = await answering(t, cutAfter('binary', type))
      const response = await withRetries(fetch, soon)(server.url, { method: 'GET' })
      assert.equal(response.status, 200)
      await assert.rejects(response.arrayBuffer(), TypeError)
      assert.equal(server.sent.length, 1)
    }
  })
})

describe('a complete stream', () => {
  it('is returned event by event, not at its end', async (t) => {
    const { promise: mayEnd, resolve: end } = Promise.withResolvers<void>()
    const server = await answering(t, async (res) => {
      res.writeHead(200, { 'content-type': SSE }).write('data: 1\n\n')
      await mayEnd
      res.end('data: [DONE]\n\n')
    })
    const response = await withRetries(fetch, soon)(server.url, post())
    const reader = response.body!.getReader()
    assert.equal(new TextDecoder().decode((await reader.read()).value), 'data: 1\n\n')
    end()
    assert.equal(new TextDecoder().decode((await reader.read()).value), 'data: [DONE]\n\n')
    assert.equal((await reader.read()).done, true)
  })

  it('that its reader cancels is closed at the server', async (t) => {
    let closed = false
    const server = await answering(t, (res) => {
      res.on('close', () => {
        closed = true
      })
      res.writeHead(200, { 'content-type': SSE }).write('data: 1\n\n')
    })
    const response = await withRetries(fetch, soon)(server.url, post())
    await response.body!.cancel()
    await eventually(() => closed, 'the end of the connection')
  })

  it('larger than any buffer arrives whole, and the answer keeps its URL', async (t) => {
    const events = Array.from(
      { length: 20_000 },
      (_, i) => `data: {"number":${i},"text":"${'x'.repeat(80)}"}\n\n`,
    )
    const server = await answering(t, (res) => {
      res.writeHead(200, { 'content-type': SSE }).end(events.join(''))
    })
    const response = await withRetries(fetch, soon)(`${server.url}/v1/x`, post())
    assert.equal(response.url, `${server.url}/v1/x`)
    assert.equal(await response.text(), events.join(''))
  })
})
