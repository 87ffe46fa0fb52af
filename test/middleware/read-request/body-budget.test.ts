import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { gzipSync } from 'node:zlib'
import { type RawClient, rawClient } from '../../support/app-server.ts'
import { cleaningUp } from '../../support/clean-up.ts'
import { chatBody } from '../../support/gateway.ts'
import { suiteGateway } from '../../support/suite-gateway.ts'
import { until } from '../../support/until.ts'

const LIMIT = 64 * 1024
const BUDGET = 4 * LIMIT
const KEYS = ['a1', 'a2', 'a3', 'b1'] as const

/** A valid body of exactly that many bytes. */
function bodyOf(bytes: number): string {
  const empty = JSON.stringify(chatBody({ filler: '' }))
  return JSON.stringify(chatBody({ filler: 'x'.repeat(bytes - empty.length) }))
}

describe('the budget of bodies that have not come whole', async () => {
  const cleanUp = cleaningUp()
  const { gateway } = await suiteGateway((url) => ({
    lines: [{ url }],
    config: {
      bodyLimitBytes: LIMIT,
      bodyBudgetBytes: BUDGET,
      accounts: [{ id: 'a' }, { id: 'b' }],
      keys: KEYS.map((key) => ({ id: key, account: key[0], secret: `sk-${key}` })),
    },
  }))
  const port = Number(new URL(gateway.url).port)

  function head(key: string, more: string): string {
    return `POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\nconnection: close\r\nauthorization: Bearer sk-${key}\r\ncontent-type: application/json\r\n${more}\r\n\r\n`
  }
  function client(bytes: string): RawClient {
    const raw = rawClient(port, bytes)
    cleanUp.after(() => raw.socket.destroy())
    return raw
  }
  /** Sends the beginning of a body that announces `declared` bytes. */
  function upload(key: string, sent: number, declared = LIMIT): RawClient {
    return client(head(key, `content-length: ${declared}`) + bodyOf(declared).slice(0, sent))
  }
  const fits = async (key: string, body = bodyOf(LIMIT)) => {
    const raw = client(head(key, `content-length: ${body.length}`))
    raw.socket.write(body.slice(0, 1000))
    await new Promise((resolve) => setTimeout(resolve, 20))
    raw.socket.write(body.slice(1000))
    return statusOf(await raw.end())
  }
  const statusOf = (received: string) => Number(received.split(' ')[1])
  const allOver = () => until(() => gateway.openCalls.size === 0, 'the end of all calls')
  async function cut(clients: readonly RawClient[]): Promise<void> {
    for (const { socket } of clients) socket.destroy()
    await allOver()
  }
  const settled = () => new Promise((resolve) => setTimeout(resolve, 100))

  /** Sends a valid body of so many bytes in chunks of so many. */
  const inChunks = async (bytes: number, size: number) => {
    const body = bodyOf(bytes)
    let chunks = ''
    for (let at = 0; at < bytes; at += size) {
      const chunk = body.slice(at, at + size)
      chunks += `${chunk.length.toString(16)}\r\n${chunk}\r\n`
    }
    return client(`${head('a1', 'transfer-encoding: chunked')}${chunks}0\r\n\r\n`).end()
  }

  for (const [bytes, size] of [
    [4000, 1],
    [LIMIT, 40],
    [LIMIT, 1000],
  ] as const) {
    it(`takes a body of ${bytes} bytes in chunks of ${size}`, async () => {
      assert.equal(statusOf(await inChunks(bytes, size)), 200)
    })
  }

  for (const [bytes, size] of [
    [10_000, 1],
    [LIMIT, 8],
  ] as const) {
    it(`refuses a body of ${bytes} bytes in chunks of ${size}, which take more work than bytes`, async () => {
      const received = await inChunks(bytes, size)
      assert.equal(statusOf(received), 400)
      assert.match(received, /too many pieces/)
      await allOver()
      assert.equal(await fits('a1'), 200, 'what it held is free')
    })
  }

  it('refuses a key whose slow uploads hold twice the limit, and no other key', async () => {
    const slow = [upload('a1', LIMIT - 1), upload('a1', LIMIT - 1)]
    await settled()
    const third = upload('a1', 2000)
    const received = await third.end()
    assert.equal(statusOf(received), 429)
    assert.match(received, /"code":"concurrency_limited"/)
    assert.match(received, /retry-after: 1\r/i)
    assert.equal(await fits('b1'), 200)
    // A body that came whole at once is never held.
    assert.equal(
      (await gateway.post('/v1/chat/completions', chatBody(), { headers: { authorization: 'Bearer sk-a1' } }))
        .status,
      200,
    )
    for (const { socket } of slow) socket.write('}')
    for (const each of slow) assert.equal(statusOf(await each.end()), 200, 'those that came first are served')
    await allOver()
    assert.equal(await fits('a1'), 200)
  })

  it('does not count what is only announced', async () => {
    const announced = Array.from({ length: 50 }, () => upload('a1', 10))
    await until(() => gateway.openCalls.size === 50, 'all calls')
    await settled()
    assert.equal(await fits('a1', bodyOf(LIMIT / 2)), 200)
    await cut(announced)
  })

  it('of the process is taken from the account that holds most, over all its keys', async () => {
    const slow = ['a1', 'a2', 'a3', 'a1', 'a2'].map((key) => upload(key, LIMIT - 1))
    await until(() => slow.some(({ received }) => received !== ''), 'the refusal of the last of them')
    const refused = slow.filter(({ received }) => received !== '')
    assert.equal(refused.length, 1)
    const received = await (refused[0] as RawClient).end()
    assert.equal(statusOf(received), 503)
    assert.match(received, /"code":"upstream_overloaded"/)
    assert.match(received, /retry-after: 1\r/i)
    assert.equal(await fits('b1'), 200, 'the other account has room')
    assert.equal(await fits('b1'), 200)
    await until(() => gateway.openCalls.size === 3, 'one more of the first account has given way')
    await cut(slow)
  })

  it('counts what a body becomes when it is decompressed, and as little pieces as they come in', async () => {
    const slow = [upload('a1', LIMIT - 1), upload('a1', LIMIT / 2)]
    await settled()
    const packed = gzipSync(bodyOf(LIMIT)).toString('latin1')
    const small = client(
      `${head('a1', `content-encoding: gzip\r\ncontent-length: ${packed.length}`)}${packed}`,
    )
    assert.equal(statusOf(await small.end()), 429)
    assert.equal(await fits('b1'), 200)
    await cut(slow)
    const crumbs = client(head('a1', 'transfer-encoding: chunked'))
    for (const byte of bodyOf(3000)) crumbs.socket.write(`1\r\n${byte}\r\n`)
    crumbs.socket.write('0\r\n\r\n')
    assert.equal(statusOf(await crumbs.end()), 200)
  })

  describe('comes back in full', () => {
    const most = LIMIT - 1
    const ends: Readonly<Record<string, (key: string) => Promise<unknown>>> = {
      'when the body is whole': (key) => fits(key),
      'when it is no JSON': (key) => fits(key, 'x'.repeat(LIMIT)),
      'when it is compressed': (key) =>
        fits(key, gzipSync(bodyOf(LIMIT), { level: 0 }).toString('latin1').slice(0, LIMIT)),
      'when it is too large': async (key) => {
        const raw = client(
          `${head(key, 'transfer-encoding: chunked')}${(LIMIT + 1).toString(16)}\r\n${'x'.repeat(LIMIT + 1)}\r\n`,
        )
        await raw.until('request_too_large')
        raw.socket.end('0\r\n\r\n')
        await raw.end()
      },
      'when the caller leaves': async (key) => {
        const raw = upload(key, most)
        await settled()
        raw.socket.end()
        await raw.end()
      },
      'when the connection is reset': async (key) => {
        const raw = upload(key, most)
        await settled()
        raw.socket.resetAndDestroy()
      },
      'when another one is refused for want of room': async (key) => {
        const slow = [upload(key, most), upload(key, most), upload(key, most)]
        await until(() => slow.some(({ received }) => received !== ''))
        await cut(slow)
      },
    }
    for (const [when, end] of Object.entries(ends)) {
      it(when, async () => {
        for (let i = 0; i < 3; i++) await end('a2')
        await allOver()
        // All the room of the key, and no byte more.
        const slow = [upload('a2', most), upload('a2', most)]
        await settled()
        assert.deepEqual(
          slow.map(({ received }) => received),
          ['', ''],
        )
        const third = upload('a2', 2000)
        assert.equal(statusOf(await third.end()), 429)
        await cut(slow)
      })
    }
  })
})
