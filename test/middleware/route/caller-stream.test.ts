import assert from 'node:assert/strict'
import { EventEmitter } from 'node:events'
import type { ServerResponse } from 'node:http'
import { describe, it } from 'node:test'
import { CallerStream } from '../../../lib/middleware/route/relay/caller-stream.ts'

/** A stream to a caller who takes what `takes` says, and what happened in which order. */
function callerStream({
  takes = () => true,
  head,
}: {
  takes?: (text: string) => boolean
  head?: Promise<void>
} = {}) {
  const log: string[] = []
  const res = Object.assign(new EventEmitter(), {
    writeHead: (status: number, headers: object) => void log.push(`head ${status} ${Object.keys(headers)}`),
    write(bytes: Buffer) {
      log.push(`write ${bytes}`)
      return takes(String(bytes))
    },
  })
  const source = {
    pause: () => void log.push('pause'),
    resume: () => void log.push('resume'),
    abandon: () => void log.push('abandon'),
  }
  const owner = {
    onCommit: () => void log.push('commit'),
    beforeHead: () => head,
    keepUnsent: (bytes: Buffer) => void log.push(`keep ${bytes}`),
  }
  const stream = new CallerStream(res as unknown as ServerResponse, source, owner)
  return { stream, res, log, write: (text: string) => stream.write(Buffer.from(text)) }
}

const HEAD = 'head 200 content-type,cache-control,x-accel-buffering'
const settled = () => new Promise((resolve) => setImmediate(resolve))

describe('the caller’s end of a stream', () => {
  it('begins with its head, right after the commit', () => {
    const { stream, log, write } = callerStream()
    assert.equal(stream.opened, undefined)
    stream.commit()
    write('a')
    write('b')
    assert.deepEqual(log, ['commit', HEAD, 'write a', 'write b'])
    assert.equal(stream.opened, undefined)
  })

  it('has the line wait while its caller is slower, once, and no longer', () => {
    const { stream, res, log, write } = callerStream({ takes: (text) => text === 'fits' })
    stream.commit()
    log.length = 0
    write('a')
    write('b')
    write('fits')
    assert.deepEqual(log, ['write a', 'pause', 'write b', 'write fits'])
    res.emit('drain')
    res.emit('drain')
    assert.deepEqual(log.slice(4), ['resume'])
    write('c')
    assert.deepEqual(log.slice(5), ['write c', 'pause'])
    res.emit('drain')
    assert.deepEqual(log.slice(7), ['resume'])
  })

  it('keeps what comes for a caller who has left, and has the line wait for nothing', () => {
    const { stream, res, log, write } = callerStream({ takes: () => false })
    stream.commit()
    write('a')
    log.length = 0
    stream.discard()
    write('b')
    assert.deepEqual(log, ['resume', 'keep b'])
    res.emit('drain')
    assert.deepEqual(log.slice(2), [])
    stream.discard()
    assert.deepEqual(log.slice(2), [])
  })

  it('has no head where its caller has left before the commit', () => {
    const { stream, log, write } = callerStream()
    stream.discard()
    stream.commit()
    write('a')
    assert.deepEqual(log, ['commit', 'keep a'])
  })
})

describe('a head that has to wait', () => {
  it('goes out with all that was written meanwhile, and the line goes on', async () => {
    const head = Promise.withResolvers<void>()
    const { stream, log, write } = callerStream({ head: head.promise })
    stream.commit()
    write('a')
    write('b')
    assert.deepEqual(log, ['commit', 'pause'])
    head.resolve()
    await stream.opened
    write('c')
    assert.deepEqual(log.slice(2), [HEAD, 'write a', 'write b', 'resume', 'write c'])
  })

  it('goes out at all without anything behind it', async () => {
    const { stream, log } = callerStream({ head: Promise.resolve() })
    stream.commit()
    await stream.opened
    assert.deepEqual(log, ['commit', 'pause', HEAD, 'resume'])
  })

  it('is followed by a wait for a caller who is slower', async () => {
    const { stream, res, log, write } = callerStream({ head: Promise.resolve(), takes: () => false })
    stream.commit()
    write('a')
    await stream.opened
    assert.deepEqual(log, ['commit', 'pause', HEAD, 'write a', 'pause'])
    res.emit('drain')
    assert.deepEqual(log.slice(5), ['resume'])
  })

  it('does not go out where it must not: the attempt is abandoned, and nothing is sent', async () => {
    const { stream, log, write } = callerStream({ head: Promise.reject(new Error('not noted')) })
    stream.commit()
    write('a')
    await assert.rejects(stream.opened ?? assert.fail('it waits'), /not noted/)
    write('b')
    assert.deepEqual(log, ['commit', 'pause', 'abandon'])
  })

  it('does not go out to a caller who has left meanwhile', async () => {
    const head = Promise.withResolvers<void>()
    const { stream, log, write } = callerStream({ head: head.promise })
    stream.commit()
    write('a')
    stream.discard()
    assert.deepEqual(log.slice(2), ['keep a', 'resume'])
    head.resolve()
    await stream.opened
    await settled()
    assert.deepEqual(log.slice(4), [])
  })
})
