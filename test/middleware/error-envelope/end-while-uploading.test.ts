import assert from 'node:assert/strict'
import { EventEmitter } from 'node:events'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { describe, it, type TestContext } from 'node:test'
import {
  endWhileUploading,
  KNOWN_CALLER,
  UNKNOWN_CALLER,
} from '../../../lib/middleware/error-envelope/end-while-uploading.ts'
import { type RawClient, rawClient } from '../../support/app-server.ts'
import { KEY } from '../../support/gateway.ts'
import { suiteGateway } from '../../support/suite-gateway.ts'
import { until } from '../../support/until.ts'

const MOST_BYTES = 64 * 1024 * 1024
const MOST_MS = 30_000

/** A refused upload that goes on, and what was done to answer it. */
function uploading(t: TestContext, bounds = KNOWN_CALLER) {
  const body = Buffer.from('error')
  t.mock.timers.enable({ apis: ['setTimeout'] })
  const log: string[] = []
  const req = Object.assign(new EventEmitter(), {
    resume: () => void log.push('resume'),
    pause: () => void log.push('pause'),
  })
  const res = {
    setHeader: (name: string, value: string) => void log.push(`${name}: ${value}`),
    write: (bytes: Buffer) => void log.push(`write ${bytes}`),
    flushHeaders: () => void log.push('flush'),
    end: () => void log.push('end'),
  }
  endWhileUploading(req as unknown as IncomingMessage, res as unknown as ServerResponse, body, bounds)
  const begun = log.splice(0)
  /** A piece of the upload, as far as it is looked at. */
  const send = (length: number) => req.emit('data', { length })
  return { req, log, begun, send }
}

describe('an upload that is refused before it has ended', () => {
  it('is answered at once, and its connection is closed', (t) => {
    assert.deepEqual(uploading(t).begun, ['connection: close', 'write error', 'resume'])
  })

  it('is answered by a head alone where there is no body', (t) => {
    t.mock.timers.reset()
    const log: string[] = []
    const req = Object.assign(new EventEmitter(), { resume() {} })
    const res = {
      setHeader() {},
      write: () => void log.push('write'),
      flushHeaders: () => void log.push('flush'),
      end: () => void log.push('end'),
    }
    endWhileUploading(
      req as unknown as IncomingMessage,
      res as unknown as ServerResponse,
      undefined,
      KNOWN_CALLER,
    )
    req.emit('close')
    assert.deepEqual(log, ['flush', 'end'])
  })

  for (const how of ['end', 'close'] as const) {
    it(`is read until its ${how}, and the answer ends then, once`, (t) => {
      const { req, log, send } = uploading(t)
      send(MOST_BYTES)
      assert.deepEqual(log, [])
      req.emit(how)
      assert.deepEqual(log, ['end'])
      send(MOST_BYTES)
      t.mock.timers.tick(MOST_MS)
      assert.deepEqual(log, ['end'])
    })
  }

  it('is read no further than 64 MiB', (t) => {
    const { req, log, send } = uploading(t)
    send(MOST_BYTES)
    assert.deepEqual(log, [])
    send(1)
    assert.deepEqual(log, ['end'])
    send(1)
    req.emit('end')
    assert.deepEqual(log, ['end'])
  })

  it('is read no further than its pieces are worth, of which each counts for 4 KiB at least', (t) => {
    const { log, send } = uploading(t)
    for (let i = 0; i < MOST_BYTES / 4096; i++) send(1)
    assert.deepEqual(log, [])
    send(1)
    assert.deepEqual(log, ['end'])
  })

  it('of a caller without a valid key is read no further than 64 KiB, and the answer can be read then', (t) => {
    const { log, send } = uploading(t, UNKNOWN_CALLER)
    send(64 * 1024)
    assert.deepEqual(log, [])
    send(1)
    assert.deepEqual(log, ['pause'])
    send(1)
    t.mock.timers.tick(499)
    assert.deepEqual(log, ['pause'])
    t.mock.timers.tick(1)
    assert.deepEqual(log, ['pause', 'end'])
  })

  it('of a caller without a valid key is read no longer than two seconds', (t) => {
    const { log } = uploading(t, UNKNOWN_CALLER)
    t.mock.timers.tick(1999)
    assert.deepEqual(log, [])
    t.mock.timers.tick(1)
    assert.deepEqual(log, ['end'])
  })

  it('of a caller without a valid key is read no further than 128 pieces, however short they are', (t) => {
    const { log, send } = uploading(t, UNKNOWN_CALLER)
    for (let i = 0; i < 128; i++) send(1)
    assert.deepEqual(log, [])
    send(1)
    assert.deepEqual(log, ['pause'])
  })

  it('that is too long just before its two seconds are over leaves the whole half second to read the answer', (t) => {
    const { log, send } = uploading(t, UNKNOWN_CALLER)
    t.mock.timers.tick(1900)
    send(64 * 1024 + 1)
    t.mock.timers.tick(499)
    assert.deepEqual(log, ['pause'])
    t.mock.timers.tick(1)
    assert.deepEqual(log, ['pause', 'end'])
  })

  it('is read no longer than half a minute', (t) => {
    const { req, log } = uploading(t)
    t.mock.timers.tick(MOST_MS - 1)
    assert.deepEqual(log, [])
    t.mock.timers.tick(1)
    assert.deepEqual(log, ['end'])
    req.emit('end')
    req.emit('close')
    assert.deepEqual(log, ['end'])
  })
})

describe('the call of a refused upload ends within its bounds', async () => {
  const { gateway } = await suiteGateway((url) => ({ lines: [{ url }], config: { bodyLimitBytes: 1024 } }))
  const port = Number(new URL(gateway.url).port)
  const keepSending = ({ socket }: RawClient): void => {
    const more = (): void => {
      if (!socket.destroyed) socket.write('x'.repeat(16 * 1024), () => setImmediate(more))
    }
    more()
  }
  /** The behaviours of a caller that has the answer. */
  const behaviours: Readonly<Record<string, (caller: RawClient) => void>> = {
    'has said that it sends no more': ({ socket }) => void socket.end(),
    leaves: ({ socket }) => void socket.destroy(),
    'resets the connection': ({ socket }) => void socket.resetAndDestroy(),
    'stops reading and leaves': ({ socket }) => void socket.pause().destroy(),
    'keeps sending': keepSending,
    'keeps sending and reads nothing': (caller) => {
      caller.socket.pause()
      keepSending(caller)
    },
    'falls silent': () => {},
  }
  const DECLARED = 'content-length: 900000000\r\n\r\n'
  const CHUNKED = 'transfer-encoding: chunked\r\n\r\nffffff\r\n'
  const SENT = 200 * 1024

  async function endsWhatever(names: readonly string[], key: string, status: number, begins: string[]) {
    const callers = begins.flatMap((begin) =>
      names.map(async (name) => {
        const head = `POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${key}\r\n`
        const caller = rawClient(port, `${head}content-type: application/json\r\n${begin}`)
        await caller.until(`HTTP/1.1 ${status}`)
        behaviours[name]?.(caller)
      }),
    )
    await Promise.all(callers)
    await until(() => gateway.openCalls.size === 0, 'the end of all calls')
  }

  it('of a caller without a valid key, whatever it does', async () => {
    const begins = [DECLARED, CHUNKED].flatMap((begin) => [1, SENT].map((bytes) => begin + 'x'.repeat(bytes)))
    await endsWhatever(Object.keys(behaviours), 'sk-unknown', 401, begins)
  })

  it('of a caller with a valid key, unless it keeps the connection and falls silent', async () => {
    const names = Object.keys(behaviours).filter((name) => name !== 'falls silent')
    await endsWhatever(names, KEY, 413, [DECLARED + 'x'.repeat(SENT)])
  })
})
