import assert from 'node:assert/strict'
import type { ServerResponse } from 'node:http'
import { describe, it } from 'node:test'
import { noteEnvelope } from '../../../lib/core/call/index.ts'
import { tellUnreadEnvelope } from '../../../lib/core/call/unread-envelope.ts'
import { recordingLogger } from '../../support/app-server.ts'

/** A layer of a router, which matches what begins with a path. */
const layer = (handle: object, path = '') => ({
  handle,
  path,
  match: (asked: string) => asked.startsWith(path),
})
const envelope = () => {
  const handle = {}
  noteEnvelope(handle)
  return handle
}
const PAGE = { 'content-security-policy': "default-src 'none'", 'content-type': 'text/html; charset=utf-8' }

/** What the operator is told of an answer that went past these layers. */
function told(app: unknown, path = '/a/b', headers: Record<string, unknown> = PAGE) {
  const logger = recordingLogger()
  const res = { getHeader: (name: string) => headers[name], req: { app } } as unknown as ServerResponse
  tellUnreadEnvelope(res, path, 'req_1', logger)
  return logger.lines.map(({ level, fields }) => [level, fields])
}
const warned = (path = '/a/b') => [['warn', { requestId: 'req_1', path }]]

describe('an error handler that a refused call went past', () => {
  it('is told of once', () => {
    const router = { stack: [layer({}), layer(envelope())] }
    assert.deepEqual(told({ router }), warned())
    assert.deepEqual(told({ router }), [])
  })

  it('is told of one by one', () => {
    const router = { stack: [layer(envelope()), layer(envelope())] }
    assert.deepEqual([told({ router }).length, told({ router }).length, told({ router }).length], [1, 1, 0])
  })

  it('is found in a router of Express 4, and in a router within one', () => {
    assert.deepEqual(told({ _router: { stack: [layer(envelope())] }, router: { stack: [] } }), warned())
    const inner = { stack: [layer({}, '/c'), layer(envelope(), '/b')] }
    assert.deepEqual(told({ router: { stack: [layer(inner, '/a')] } }), warned())
    const atRoot = { stack: [layer(envelope(), '/')] }
    assert.deepEqual(told({ router: { stack: [layer(atRoot, '/a/b')] } }), warned())
    const noPath = { ...layer({ stack: [layer(envelope(), '/a')] }), path: undefined }
    assert.deepEqual(told({ router: { stack: [noPath] } }), warned())
  })

  it('is not told of where the call did not come by', () => {
    assert.deepEqual(told({ router: { stack: [layer(envelope(), '/c')] } }), [])
    const inner = { stack: [layer(envelope(), '/a')] }
    assert.deepEqual(told({ router: { stack: [layer(inner, '/a')] } }), [])
    assert.deepEqual(told({ router: { stack: [layer({}), layer({ stack: 7 })] } }), [])
  })

  it('is not told of where the answer is not the page of Express', () => {
    const router = { stack: [layer(envelope())] }
    for (const headers of [
      {},
      { ...PAGE, 'content-type': undefined },
      { ...PAGE, 'content-type': 'application/json; text/html' },
      { ...PAGE, 'content-security-policy': "default-src 'self'" },
    ])
      assert.deepEqual(told({ router }, '/a/b', headers), [])
    assert.deepEqual(told({ router }), warned())
  })

  it('hinders no end of a call, whatever the app is', () => {
    for (const app of [undefined, {}, { router: {} }, { router: { stack: 7 } }])
      assert.deepEqual(told(app), [])
    const broken = {
      ...layer(envelope()),
      match: () => {
        throw new URIError('%')
      },
    }
    assert.deepEqual(told({ router: { stack: [broken] } }), [])
  })
})
