import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { rawClient } from '../../support/app-server.ts'
import { until } from '../../support/until.ts'
import { guardedGateway, KEY, statusesIn } from './guarded-gateway.ts'

const LOOK_UP = `GET /v1/models HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${KEY}\r\n\r\n`

describe('requests that are sent before the one in front of them is answered', async () => {
  const { gateway } = await guardedGateway()

  it('are answered in their order, as many as a client may have in mind', async () => {
    const last = 'GET /v1/models HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n'
    const received = await rawClient(gateway.port, LOOK_UP.repeat(30) + last).end()
    assert.deepEqual(statusesIn(received), [...Array(30).fill(200), 401])
  })

  it('end their connection beyond that, also where each is refused for what it expects', async () => {
    const path = '/v1/models/expecting'
    const expecting = `GET ${path} HTTP/1.1\r\nhost: x\r\nexpect: nothing\r\n\r\n`
    const one = await rawClient(gateway.port, expecting).end()
    assert.deepEqual(statusesIn(one), [417])
    const count = () => gateway.logged.filter((line) => line.path === path).length
    await rawClient(gateway.port, expecting.repeat(3000)).end()
    const other = await rawClient(
      gateway.port,
      LOOK_UP.replace('\r\n\r\n', '\r\nconnection: close\r\n\r\n'),
    ).end()
    assert.deepEqual(statusesIn(other), [200])
    await until(() => count() > 1)
    await sleep(200)
    assert.ok(count() < 100, `${count()} were begun`)
  })

  it('end their connection beyond that, and no other', async () => {
    const other = rawClient(gateway.port, LOOK_UP)
    await rawClient(gateway.port, LOOK_UP.repeat(3000)).end()
    other.socket.write(LOOK_UP.replace('\r\n\r\n', '\r\nconnection: close\r\n\r\n'))
    assert.deepEqual(statusesIn(await other.end()), [200, 200])
    assert.ok(!gateway.stderr.includes('Error'), gateway.stderr)
  })
})
