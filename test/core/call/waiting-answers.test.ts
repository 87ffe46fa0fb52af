import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { callOf } from '../../../lib/core/call/index.ts'
import { eventually, rawClient, serveApp } from '../../support/app-server.ts'

describe('a call whose answer waits behind another one of its connection', () => {
  it('ends when the connection is lost, and its caller has left', async (t) => {
    const ended: string[] = []
    const left: string[] = []
    let begun = 0
    const server = await serveApp((app) => {
      app.use((req) => {
        begun++
        const call = callOf(req)
        call.onLeave(() => void left.push(call.path))
        call.onEnd('test', ({ outcome }) => void ended.push(`${call.path} ${outcome?.errorCode}`))
      })
    })
    t.after(() => server.close())
    const client = rawClient(
      server.port,
      ['/a', '/b', '/c'].map((path) => `GET ${path} HTTP/1.1\r\nhost: x\r\n\r\n`).join(''),
    )
    await eventually(() => begun === 3)
    client.socket.resetAndDestroy()
    await eventually(() => ended.length === 3)
    assert.deepEqual(left.toSorted(), ['/a', '/b', '/c'])
    assert.deepEqual(
      ended.toSorted(),
      ['/a', '/b', '/c'].map((path) => `${path} client_closed_request`),
    )
  })
})
