import assert from 'node:assert/strict'
import { IncomingMessage, ServerResponse } from 'node:http'
import { Socket } from 'node:net'
import { describe, it } from 'node:test'
import {
  callOf,
  consoleLogger,
  noteUpgrade,
  openCall,
  quietLogger,
  upgradeOf,
} from '../../../lib/core/call/index.ts'
import { GatewayError } from '../../../lib/core/errors/index.ts'
import { protocolByPath } from '../../../lib/core/protocols/index.ts'
import { recordingLogger } from '../../support/app-server.ts'
import { opened } from './opened-call.ts'

describe('a call that is opened', () => {
  it('has the path as it was sent, without the query', () => {
    const rows: [request: object, path: string][] = [
      [{ url: '/a/b?c=d?e' }, '/a/b'],
      [{ url: '/b', originalUrl: '/a/b?x' }, '/a/b'],
      [{ url: '?x' }, ''],
      [{ url: '/a' }, '/a'],
      [{ url: 'http://other.example:80/v1/models?x' }, '/v1/models'],
      [{ url: '/b', originalUrl: 'HTTPS://other.example/a/b' }, '/a/b'],
      [{ url: 'http://other.example?x' }, '/'],
      [{ url: '/http://other.example/a' }, '/http://other.example/a'],
      [{ url: '*' }, '*'],
      [{ url: undefined }, '/'],
    ]
    for (const [request, path] of rows) assert.equal(opened(request).call.path, path)
    const { call } = opened({ url: `/${'x'.repeat(600)}` })
    assert.deepEqual([call.path.length, call.shortPath.length], [601, 500])
  })

  it('has the method, the protocol of the path, and the logger that it is given', () => {
    const { call } = opened()
    assert.deepEqual(
      [call.method, call.protocol, call.logger],
      ['POST', protocolByPath('/v1/chat/completions'), consoleLogger],
    )
    assert.equal(opened({ method: undefined }).call.method, 'GET')
    const logger = quietLogger(recordingLogger())
    const other = protocolByPath('/v1/messages')
    const paths: string[] = []
    const protocol = (path: string) => {
      paths.push(path)
      return other
    }
    const { call: told } = opened({ url: '/a?b' }, { logger, protocol })
    assert.deepEqual([told.protocol, told.logger, paths], [other, logger, ['/a']])
  })

  it('has the address that Express determines, else that of the socket', () => {
    const app = (trusts: boolean) => ({ enabled: (setting: string) => trusts && setting === 'trust proxy' })
    const rows: [request: object, address: string | undefined, ip: string | null][] = [
      [{}, '10.0.0.1', '10.0.0.1'],
      [{ ip: '1.2.3.4' }, '10.0.0.1', '10.0.0.1'],
      [{ ip: '1.2.3.4', app: app(false) }, '10.0.0.1', '10.0.0.1'],
      [{ ip: '1.2.3.4', app: {} }, '10.0.0.1', '10.0.0.1'],
      [{ ip: '1.2.3.4', app: app(true) }, '10.0.0.1', '1.2.3.4'],
      [{ ip: undefined, app: app(true) }, '10.0.0.1', '10.0.0.1'],
      [{ ip: '203.0.113.7:51234', app: app(true) }, '10.0.0.1', '203.0.113.7'],
      [{ ip: 'unknown', app: app(true) }, '10.0.0.1', null],
      [{}, '::ffff:10.0.0.1', '10.0.0.1'],
      [{}, '::ffff:a00:1', '10.0.0.1'],
      [{}, 'fe80::1%eth0', 'fe80::1'],
      [{}, undefined, null],
    ]
    for (const [request, address, ip] of rows) {
      const socket = new Socket()
      Object.defineProperty(socket, 'remoteAddress', { value: address })
      const req = Object.assign(new IncomingMessage(socket), request)
      assert.equal(openCall(req, new ServerResponse(req)).clientIp, ip, JSON.stringify([request, address]))
    }
  })

  it('has the id that the caller gave, printable and short', () => {
    const given = (id: unknown) => opened({ headers: { 'x-request-id': id } }).call.clientRequestId
    assert.equal(given('mine ~1'), 'mine ~1')
    assert.equal(given('a\u001fb\u007fcé'), 'a?b?c?')
    assert.equal(given('x'.repeat(201)), 'x'.repeat(200))
    for (const none of [undefined, '', ['a']]) assert.equal(given(none), null)
  })

  it('sends its own id in each header of its protocol, unless the head has been sent', () => {
    for (const url of ['/v1/chat/completions', '/v1/messages', '/api/v3/contents/generations/tasks']) {
      const { call, res } = opened({ url })
      const names = call.protocol.requestIdHeaders
      assert.ok(names.length > 0)
      for (const name of names) assert.equal(res.getHeader(name), call.id)
    }
    const req = new IncomingMessage(new Socket())
    const sent = new ServerResponse(req)
    sent.flushHeaders()
    assert.match(openCall(req, sent).id, /^req_/)
  })

  it('is the same object for every caller of the function, and needs a response', () => {
    const { req, res, call } = opened()
    assert.equal(openCall(req, res), call)
    assert.equal(callOf(req), call)
    assert.equal(call.isImplicit, false)
    const plain = new IncomingMessage(new Socket())
    assert.throws(() => callOf(plain), TypeError)
    const express = Object.assign(plain, { res: new ServerResponse(plain) })
    assert.equal(callOf(express), callOf(express))
    assert.equal(callOf(express).isImplicit, true)
  })
})

describe('a call of a request for another protocol', () => {
  it('answers on its socket, also when it is opened with another response', async () => {
    const socket = new Socket()
    const req = Object.assign(new IncomingMessage(socket), { url: '/v1/realtime', headers: {} })
    assert.equal(upgradeOf(req), undefined)
    const upgrade = { socket, head: Buffer.alloc(0) }
    noteUpgrade(req, upgrade)
    assert.equal(upgradeOf(req), upgrade)
    const res = new ServerResponse(req)
    const call = openCall(req, res)
    assert.equal(res.getHeader('x-request-id'), call.id, 'in case it is answered in plain HTTP')
    assert.equal(callOf(req), call)
    socket.destroy()
    await new Promise((resolve) => call.onEnd('end', () => resolve(undefined)))
    assert.deepEqual(call.outcome, {
      status: 499,
      errorCode: 'client_closed_request',
      finish: 'interrupted',
    })
  })
})

describe('an error of a call', () => {
  it('has the id of the call in its headers', () => {
    const { call } = opened({ url: '/v1/messages' })
    const error = call.refuse('key_expired', { message: 'No.' })
    assert.deepEqual([error.code, error.message, call.refusal], ['key_expired', 'No.', error])
    for (const name of call.protocol.requestIdHeaders) assert.equal(error.headers[name], call.id)
    assert.notEqual(call.refuse('conflict'), error)
  })

  it('is passed to all listeners, each time, and to listeners added later', () => {
    const { call } = opened()
    const told: string[] = []
    call.onFail(() => void told.push('first'))
    call.onFail(() => void told.push('second'))
    assert.equal(told.length, 0)
    call.fail(new GatewayError('conflict'))
    call.onFail(() => void told.push('late'))
    assert.deepEqual(told, ['first', 'second', 'late'])
    call.fail(new GatewayError('conflict'))
    assert.deepEqual(told.slice(3), ['first', 'second', 'late'])
  })

  it('ends it as refused, failed or interrupted; the first counts', () => {
    const outcome = (
      code: 'conflict' | 'internal_error' | 'client_closed_request',
      { attempts = -1, sent = false } = {},
    ) => {
      const { call, res } = opened()
      if (attempts >= 0)
        call.routing = { region: '', strategy: '', eliminated: [], attempts: Array(attempts).fill({}) }
      if (sent) {
        res.statusCode = 202
        res.flushHeaders()
      }
      call.fail(new GatewayError(code))
      const first = call.outcome
      call.fail(new GatewayError('key_expired'))
      assert.equal(call.outcome, first)
      return [first?.status, first?.errorCode, first?.finish]
    }
    assert.deepEqual(outcome('conflict'), [409, 'conflict', 'refused'])
    assert.deepEqual(outcome('conflict', { attempts: 0 }), [409, 'conflict', 'refused'])
    assert.deepEqual(outcome('conflict', { attempts: 1 }), [409, 'conflict', 'failed'])
    assert.deepEqual(outcome('internal_error'), [500, 'internal_error', 'failed'])
    assert.deepEqual(outcome('client_closed_request'), [499, 'client_closed_request', 'interrupted'])
    assert.deepEqual(outcome('conflict', { sent: true, attempts: 1 }), [202, 'conflict', 'interrupted'])
  })
})
