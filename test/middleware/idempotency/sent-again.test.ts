import assert from 'node:assert/strict'
import { IncomingMessage, ServerResponse } from 'node:http'
import { Socket } from 'node:net'
import { describe, it } from 'node:test'
import type { IdempotencyRecord } from '../../../lib/core/idempotency/index.ts'
import { sendAgain } from '../../../lib/middleware/idempotency/idempotency.ts'

describe('a repetition', () => {
  const record: IdempotencyRecord = {
    owner: 'req_first',
    fingerprint: 'f',
    state: 'completed',
    expiresAt: 0,
    answer: JSON.stringify({
      status: 201,
      headers: { 'x-mode': 'a', link: ['b', 'c'] },
      body: '/wA=',
      encoding: 'base64',
    }),
  }
  /** The answer that was sent again, or nothing where none was. */
  function again(members: Partial<IdempotencyRecord>, fingerprint = 'f') {
    const res = new ServerResponse(new IncomingMessage(new Socket()))
    const ended: unknown[] = []
    res.end = (chunk?: unknown) => {
      ended.push(chunk)
      return res
    }
    const did = sendAgain({ ...record, ...members }, fingerprint, res)
    return { did, ended, status: res.statusCode, headers: { ...res.getHeaders() } }
  }

  it('gets status, headers and body of the first, and whose they are', () => {
    assert.deepEqual(again({}), {
      did: true,
      ended: [Buffer.from([0xff, 0])],
      status: 201,
      headers: {
        'x-mode': 'a',
        link: ['b', 'c'],
        'idempotent-replayed': 'true',
        'x-original-request-id': 'req_first',
        'content-length': 2,
      },
    })
  })

  for (const [status, length] of [
    [200, 0],
    [203, 0],
    [204, undefined],
    [205, undefined],
    [304, undefined],
    [404, 0],
  ] as const)
    it(`gets ${length === undefined ? 'no length' : 'a length'} with ${status}`, () => {
      const answer = JSON.stringify({ status, headers: {}, body: '', encoding: 'utf8' })
      assert.equal(again({ answer }).headers['content-length'], length)
    })

  for (const [name, members, fingerprint] of [
    ['the first is still running', { state: 'running' }, 'f'],
    ['the first had other content', {}, 'g'],
    ['there is no answer', { answer: undefined }, 'f'],
  ] as const)
    it(`gets nothing where ${name}`, () => {
      const { did, ended, status, headers } = again(members as Partial<IdempotencyRecord>, fingerprint)
      assert.deepEqual([did, ended, status, headers], [false, [], 200, {}])
    })
})
