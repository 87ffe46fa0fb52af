import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { type RawClient, rawClient } from '../../support/app-server.ts'
import { post } from '../../support/gateway-process.ts'
import { chatAnswer } from '../../support/scripted-upstream.ts'
import { until } from '../../support/until.ts'
import { guardedGateway, KEY, OTHER_KEY, statusesIn } from './guarded-gateway.ts'

/** It leaves 86 connections to callers. */
const FEW_DESCRIPTORS = ['sh', '-c', 'ulimit -n 300; exec "$@"', 'sh']
const CONNECTIONS = 86

const head = (headers: string, key = KEY, path = '/v1/chat/completions'): string =>
  `POST ${path} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${key}\r\ncontent-type: application/json\r\n${headers}\r\n\r\n`
const BODY = JSON.stringify({ model: 'chat', messages: [{ role: 'user', content: 'Hello!' }] })
const call = (key = KEY, more = ''): string => head(`${more}content-length: ${BODY.length}`, key) + BODY
const authorization = `Bearer ${OTHER_KEY}`

describe('the body of a request', async () => {
  const { gateway, upstream } = await guardedGateway({}, undefined, (url) => ({
    passThrough: [{ path: '/v1/raw', lines: ['line-openai'] }],
    lines: [
      { id: 'line-openai', provider: 'p', protocol: 'openai', baseUrl: `${url}/v1`, models: { chat: 'u' } },
    ],
  }))

  it('must arrive: 16 KiB, or the rest of it, in every 15 s', async () => {
    const slow = {
      small: rawClient(gateway.port, `${head(`content-length: ${BODY.length}`)}{`),
      chunked: rawClient(gateway.port, `${head('transfer-encoding: chunked')}1\r\n{\r\n`),
      large: rawClient(gateway.port, `${head('content-length: 1000000')}{`),
      'passed on': rawClient(gateway.port, `${head('content-length: 100', KEY, '/v1/raw')}{`),
    }
    // A body that takes longer, but comes.
    const spaces = 40_000
    const steady = rawClient(
      gateway.port,
      head(`content-length: ${BODY.length + spaces}\r\nconnection: close`),
    )
    const from = performance.now()
    const ended = Object.entries(slow).map(async ([what, client]) => {
      const timer = setInterval(() => client.socket.write(what === 'chunked' ? '1\r\n \r\n' : ' '), 1000)
      const received = await client.end()
      clearInterval(timer)
      return [what, statusesIn(received)[0], Math.floor((performance.now() - from) / 10_000)]
    })
    for (let sent = 0; sent < spaces; sent += 2000) {
      steady.socket.write(' '.repeat(2000))
      await sleep(900)
    }
    steady.socket.write(BODY)
    assert.deepEqual(statusesIn(await steady.end()), [200])
    assert.deepEqual(await Promise.all(ended), [
      ['small', 408, 1],
      ['chunked', 408, 1],
      ['large', 408, 1],
      // Its head has gone to the line, which is left.
      ['passed on', 408, 1],
    ])
    await until(() => upstream.connections.size <= 1, 'lines are left')
    assert.match(slow.small.received, /"code":"invalid_request"/)
  })
})

describe('a key that sends many bodies at a time', async () => {
  const { gateway, upstream } = await guardedGateway({}, undefined, () => ({
    uploadsPerKey: 3,
    accounts: [{ id: 'acme', balance: '0' }, { id: 'globex' }],
  }))
  const uploads = (length: number): RawClient[] =>
    Array.from({ length: 3 }, () => rawClient(gateway.port, `${head(`content-length: ${length}`)}{`))

  it('is refused further ones before they are read, and no other key is', async () => {
    const unfinished = uploads(BODY.length)
    const refused = async () =>
      statusesIn(await rawClient(gateway.port, `${head('content-length: 9999')}{`).end())
    let statuses = await refused()
    while (statuses[0] !== 429) statuses = await refused()
    assert.deepEqual(statuses, [429])
    const answer = await post(gateway.url, JSON.parse(BODY), { authorization: `Bearer ${KEY}` })
    assert.equal(answer.status, 429)
    assert.equal(answer.headers.get('retry-after'), '1')
    assert.match(await answer.text(), /"code":"concurrency_limited"/)
    const asked = await fetch(`${gateway.url}/v1/models`, { headers: { authorization: `Bearer ${KEY}` } })
    assert.equal(asked.status, 200)
    assert.equal((await post(gateway.url, JSON.parse(BODY), { authorization })).status, 200)
    assert.equal(upstream.requests.length, 1)
    for (const { socket } of unfinished) socket.destroy()
    const paid = async () =>
      (await post(gateway.url, JSON.parse(BODY), { authorization: `Bearer ${KEY}` })).status
    let status = await paid()
    while (status === 429) status = await paid()
    assert.equal(status, 402)
  })
})

describe('connections of a balancer', async () => {
  const { gateway } = await guardedGateway({}, undefined, () => ({ trustProxy: 'loopback' }), FEW_DESCRIPTORS)

  it('stay open when a key, or an address behind it, takes all others', async () => {
    const honest = Array.from({ length: 40 }, (_, i) => {
      const said =
        i % 2 === 0
          ? call(OTHER_KEY, `x-forwarded-for: 10.1.0.${i}\r\n`)
          : `GET /healthz HTTP/1.1\r\nhost: x\r\nx-forwarded-for: 10.1.0.${i}\r\n\r\n`
      return { client: rawClient(gateway.port, said), said }
    })
    await until(
      () => honest.every(({ client }) => statusesIn(client.received).length === 1),
      'all are answered',
    )
    for (const from of ['10.2.0.1', '2001:db8:1:200::1']) {
      const attackers = Array.from({ length: 2 * CONNECTIONS }, (_, i) => {
        const address = from.includes(':') ? `2001:db8:1:2${i % 90 < 10 ? '0' : ''}${i % 90}::1` : from
        return rawClient(
          gateway.port,
          `GET /healthz HTTP/1.1\r\nhost: x\r\nx-forwarded-for: ${address}\r\n\r\n`,
        )
      })
      attackers.push(
        ...Array.from({ length: 2 * CONNECTIONS }, () =>
          rawClient(gateway.port, `${head('content-length: 1000\r\nx-forwarded-for: 10.3.0.1')}{`),
        ),
      )
      await until(() => attackers.every(({ socket }) => !socket.connecting), 'they are connected')
      await sleep(500)
      for (const { client, said } of honest) client.socket.write(said)
      const count = statusesIn(honest[0]?.client.received ?? '').length + 1
      await until(
        () => honest.every(({ client }) => statusesIn(client.received).length >= count),
        'all are answered',
      )
      assert.ok(honest.every(({ client }) => statusesIn(client.received).every((status) => status === 200)))
      for (const { socket } of attackers) socket.destroy()
    }
    for (const { client } of honest) client.socket.destroy()
  })
})

describe('running calls of a key that has all connections', async () => {
  const { gateway, upstream } = await guardedGateway(
    {},
    (res, { json }) => {
      if (json.stream !== true) return chatAnswer(res)
      res.setHeader('content-type', 'text/event-stream')
      const choices = [{ index: 0, delta: { content: 'x' }, finish_reason: null }]
      const event = { id: 'c', object: 'chat.completion.chunk', created: 1, model: 'u', choices }
      res.write(`data: ${JSON.stringify(event)}\n\n`)
    },
    undefined,
    FEW_DESCRIPTORS,
  )
  const streaming = JSON.stringify({ ...JSON.parse(BODY), stream: true })
  const stream = (): RawClient =>
    rawClient(gateway.port, head(`content-length: ${streaming.length}`) + streaming)
  const begun = (clients: readonly RawClient[]) => clients.filter(({ received }) => received.includes('"x"'))

  it('go on while its unfinished requests give way, then make room one by one, and their calls end', async () => {
    const running = Array.from({ length: 40 }, stream)
    await until(() => begun(running).length === 40, 'streams have begun')
    const uploads = Array.from({ length: 3 * CONNECTIONS }, () =>
      rawClient(gateway.port, `${head('content-length: 1000')}{`),
    )
    await until(() => uploads.filter(({ socket }) => socket.closed).length > CONNECTIONS, 'uploads give way')
    for (let i = 0; i < 5; i++)
      assert.equal((await post(gateway.url, JSON.parse(BODY), { authorization })).status, 200)
    assert.ok(running.every(({ socket }) => !socket.closed))
    for (const { socket } of uploads) socket.destroy()
    // From here on, all its connections have running calls.
    const more = Array.from({ length: CONNECTIONS }, stream)
    const all = [...running, ...more]
    await until(
      () => all.every(({ socket, received }) => socket.closed || received.includes('"x"')),
      'all are answered',
    )
    const refused = more.filter(({ received }) => statusesIn(received)[0] === 429)
    assert.ok(
      refused.length >= 40 - 2 && refused.every(({ received }) => received.includes('concurrency_limited')),
      `${refused.length}`,
    )
    const cut = () => all.filter(({ socket }) => socket.closed).length - refused.length
    const before = cut()
    const others = Array.from({ length: 5 }, () => rawClient(gateway.port, call(OTHER_KEY)))
    await until(() => others.every(({ received }) => statusesIn(received)[0] === 200), 'others are answered')
    assert.ok(cut() - before <= 5, `${cut() - before} were cut`)
    for (const { socket } of [...all, ...others]) socket.destroy()
    await until(
      () => upstream.requests.every(({ cut, json }) => cut || json.stream !== true),
      'lines are left',
    )
    assert.equal((await post(gateway.url, JSON.parse(BODY), { authorization: `Bearer ${KEY}` })).status, 200)
  })
})
