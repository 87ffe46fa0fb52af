import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { rawClient } from '../../support/app-server.ts'
import { guardedGateway, KEY, statusesIn } from './guarded-gateway.ts'

const LOOK_UP = `GET /v1/models HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${KEY}\r\n\r\n`

describe('requests that are sent before the one in front of them is answered', async () => {
  const { gateway } = await guardedGateway()

  it('are answered in their order, as many as a client may have in mind', async () => {
    const last = 'GET /v1/models HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n'
    const received = await rawClient(gateway.port, LOOK_UP.repeat(30) + last).end()
    assert.deepEqual(statusesIn(received), [...Array(30).fill(200), 401])
  })

  it('end their connection beyond that, and no other', async () => {
    const other = rawClient(gateway.port, LOOK_UP)
    await rawClient(gateway.port, LOOK_UP.repeat(3000)).end()
    other.socket.write(LOOK_UP.replace('\r\n\r\n', '\r\nconnection: close\r\n\r\n'))
    assert.deepEqual(statusesIn(await other.end()), [200, 200])
    assert.ok(!gateway.stderr.includes('Error'), gateway.stderr)
  })
})
