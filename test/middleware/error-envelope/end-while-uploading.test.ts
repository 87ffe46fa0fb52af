import assert from 'node:assert/strict'
import { EventEmitter } from 'node:events'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { describe, it, type TestContext } from 'node:test'
import {
  endWhileUploading,
  KNOWN_CALLER,
  UNKNOWN_CALLER,
} from '../../../lib/middleware/error-envelope/end-while-uploading.ts'

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
    assert.deepEqual(uploading(t).begun, ['resume', 'connection: close', 'write error'])
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
    send(MOST_BYTES - 1)
    send(1)
    assert.deepEqual(log, [])
    send(1)
    assert.deepEqual(log, ['end'])
    send(1)
    req.emit('end')
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
    t.mock.timers.tick(2000)
    assert.deepEqual(log, ['end'])
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
