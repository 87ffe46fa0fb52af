import assert from 'node:assert/strict'
import { EventEmitter } from 'node:events'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { describe, it, type TestContext } from 'node:test'
import { endWhileUploading } from '../../../lib/middleware/error-envelope/end-while-uploading.ts'

const MOST_BYTES = 64 * 1024 * 1024
const MOST_MS = 30_000

/** A refused upload that goes on, and what was done to answer it. */
function uploading(t: TestContext, body: Buffer | undefined = Buffer.from('error')) {
  t.mock.timers.enable({ apis: ['setTimeout'] })
  const log: string[] = []
  const req = Object.assign(new EventEmitter(), { resume: () => void log.push('resume') })
  const res = {
    setHeader: (name: string, value: string) => void log.push(`${name}: ${value}`),
    write: (bytes: Buffer) => void log.push(`write ${bytes}`),
    flushHeaders: () => void log.push('flush'),
    end: () => void log.push('end'),
  }
  endWhileUploading(req as unknown as IncomingMessage, res as unknown as ServerResponse, body)
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
    endWhileUploading(req as unknown as IncomingMessage, res as unknown as ServerResponse, undefined)
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
