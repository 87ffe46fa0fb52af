import assert from 'node:assert/strict'
import type { ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import { describe, it, type TestContext } from 'node:test'
import { holdEnd, holdLastByte, holdLastByteOf } from '../../../lib/core/call/index.ts'
import { rawClient, serveApp } from '../../support/app-server.ts'
import { until } from '../../support/until.ts'

const GET = 'GET / HTTP/1.1\r\nHost: x\r\n\r\n'

/** A caller of one answer. */
async function caller(t: TestContext, handler: (res: ServerResponse) => void) {
  const app = await serveApp((app) => void app.use((_req, res) => handler(res)))
  t.after(() => app.close())
  const client = rawClient(app.port, GET)
  t.after(() => client.socket.destroy())
  return client
}
const settled = async () => {
  for (let turn = 0; turn < 5; turn++) await new Promise(setImmediate)
}

describe('an answer of a declared length', () => {
  const begin = (res: ServerResponse) => {
    res.setHeader('content-length', 6)
    res.write('ab')
    res.write('cd')
  }

  it('is whole with the last byte of that length, which waits', async (t) => {
    const go = Promise.withResolvers<void>()
    let asked = 0
    let answer: ServerResponse | undefined
    const client = await caller(t, (res) => {
      answer = res
      const run = () => {
        asked++
        return go.promise
      }
      holdLastByte(res, run, () => assert.fail())
      begin(res)
      assert.equal(asked, 0)
      assert.equal(res.write('ef'), true)
      assert.equal(res.write('more'), true)
    })
    await client.until('abcd')
    await settled()
    assert.deepEqual([asked, client.received.endsWith('abcd')], [1, true])
    go.resolve()
    await client.until('abcdef')
    assert.equal(answer?.writableEnded, false, 'the handler ends it')
    answer?.end()
    await until(() => answer?.writableFinished === true, 'the end of the answer')
    assert.deepEqual([asked, client.received.endsWith('abcdef')], [1, true])
  })

  it('may be ended while its last byte waits, and is then ended behind it', async (t) => {
    const go = Promise.withResolvers<void>()
    let answer: ServerResponse | undefined
    const client = await caller(t, (res) => {
      answer = res
      holdLastByte(
        res,
        () => go.promise,
        () => assert.fail(),
      )
      begin(res)
      res.write('ef')
      assert.equal(res.end(), res)
    })
    await client.until('abcd')
    await settled()
    assert.deepEqual([client.received.endsWith('abcd'), answer?.writableEnded], [true, false])
    go.resolve()
    await client.until('abcdef')
    await until(() => answer?.writableFinished === true, 'the end of the answer')
  })

  it('is sent at once if there is nothing to wait for', async (t) => {
    let asked = 0
    const client = await caller(t, (res) => {
      holdLastByte(
        res,
        () => void asked++ as undefined,
        () => assert.fail(),
      )
      begin(res)
      res.end('ef')
    })
    await client.until('abcdef')
    assert.equal(asked, 1)
  })

  it('is settled before its last byte by all its holders, in reverse order', async (t) => {
    const happened: string[] = []
    const client = await caller(t, (res) => {
      const hold = (name: string) =>
        holdEnd(
          res,
          {
            beforeEnd: () => {
              happened.push(name)
              return Promise.resolve()
            },
            onSend: (chunk) => void happened.push(`${name} sees ${chunk}`),
          },
          () => assert.fail(),
        )
      holdLastByte(
        res,
        () => void happened.push('last byte') as undefined,
        () => assert.fail(),
      )
      hold('inner')
      hold('outer')
      res.setHeader('content-length', 4)
      res.write('ab')
      res.write('cd')
      res.end()
    })
    await client.until('abcd')
    assert.deepEqual(happened, [
      'outer sees ab',
      'inner sees ab',
      'outer sees cd',
      'outer',
      'inner sees cd',
      'inner',
      'last byte',
    ])
  })
})

describe('an answer of a declared length that cannot be settled', () => {
  const fault = new Error('away')
  for (const [when, beforeEnd] of [
    ['later', () => Promise.reject(fault)],
    [
      'at once',
      () => {
        throw fault
      },
    ],
  ] as const)
    it(`becomes another answer, which may be written in pieces: ${when}`, async (t) => {
      const errors: unknown[] = []
      const client = await caller(t, (res) => {
        const instead = (error: unknown) => {
          errors.push(error)
          res.statusCode = 500
          res.setHeader('content-length', 4)
          res.write('no')
          res.end('pe')
        }
        holdEnd(res, { beforeEnd, onSend: () => {} }, instead)
        res.setHeader('content-length', 6)
        res.write('abcdef')
        res.end()
      })
      await client.until('nope')
      assert.match(client.received, /^HTTP\/1\.1 500 /)
      assert.deepEqual([errors, client.received.includes('abc')], [[fault], false])
    })
})

describe('an answer without a length', () => {
  it('waits with its end, which is all that is left', async (t) => {
    const go = Promise.withResolvers<void>()
    let asked = 0
    const client = await caller(t, (res) => {
      const run = () => {
        asked++
        return go.promise
      }
      holdLastByte(res, run, () => assert.fail())
      res.write('ab')
      res.end('cd')
    })
    await client.until('ab')
    await settled()
    assert.deepEqual([asked, client.received.includes('cd')], [1, false])
    go.resolve()
    await client.until('cd')
    await client.until('0\r\n\r\n')
  })

  it('sends most of a large end first, with its length', async (t) => {
    const go = Promise.withResolvers<void>()
    const body = `${'x'.repeat(40_000)}!`
    const client = await caller(t, (res) => {
      holdLastByte(
        res,
        () => go.promise,
        () => assert.fail(),
      )
      res.end(body)
    })
    await client.until('xxx')
    await until(() => client.received.length > 20_000, 'most of the answer')
    await settled()
    assert.match(client.received, /content-length: 40001\r\n/i)
    assert.equal(client.received.includes('!'), false)
    go.resolve()
    await client.until('!')
    assert.ok(client.received.endsWith(body))
  })
})

describe('an answer whose holder does not observe its data', () => {
  it('is sent when its end is released', async (t) => {
    let asked = 0
    const client = await caller(t, (res) => {
      const holder = { beforeEnd: () => void asked++ as undefined }
      holdEnd(res, holder, () => assert.fail())
      res.setHeader('content-length', 4)
      res.write('ab')
      res.write('cd')
      assert.equal(asked, 0, 'the end of its length is not its end')
      res.end()
    })
    await client.until('abcd')
    assert.equal(asked, 1)
  })
})

describe('the end of a connection in another protocol', () => {
  const socketOf = () => {
    const ended: unknown[][] = []
    const socket = { end: (...given: unknown[]) => void ended.push(given) }
    return { socket: socket as unknown as Socket, ended }
  }

  it('happens at once, or after the work before the last byte', async () => {
    const { socket, ended } = socketOf()
    let asked = 0
    holdLastByteOf(socket, () => void asked++ as undefined)
    assert.equal(socket.end('a'), socket)
    assert.deepEqual([asked, ended], [1, [['a']]])
    const go = Promise.withResolvers<void>()
    const other = socketOf()
    holdLastByteOf(other.socket, () => go.promise)
    assert.equal(other.socket.end('a', 'utf8'), other.socket)
    await settled()
    assert.deepEqual(other.ended, [])
    go.resolve()
    await settled()
    assert.deepEqual(other.ended, [['a', 'utf8']])
  })
})
