import assert from 'node:assert/strict'
import type { IncomingHttpHeaders } from 'node:http'
import { describe, it } from 'node:test'
import { authenticate, errorEnvelope, memoryKeyDirectory } from '../../../lib/index.ts'
import { readCredential } from '../../../lib/middleware/authenticate/authenticate.ts'
import { serveApp } from '../../support/app-server.ts'

const unusable = (why: string) => ({ kind: 'unusable', why })
const key = (secret: string) => ({ kind: 'key', secret })
const MISSING = { kind: 'missing' }
const TOKEN = `${Buffer.from('{"alg":"none"}').toString('base64url')}.e30.x`
const LONG = 'x'.repeat(512)

const ROWS: [headers: IncomingHttpHeaders, found: object][] = [
  [{}, MISSING],
  [{ authorization: '' }, MISSING],
  [{ authorization: '  ' }, MISSING],
  [{ authorization: 'Bearer' }, MISSING],
  [{ authorization: 'Bearer  ' }, MISSING],
  [{ authorization: 'Bearer sk-1' }, key('sk-1')],
  [{ authorization: ' bearer   sk-1 ' }, key('sk-1')],
  [{ authorization: 'BEARER sk-1' }, key('sk-1')],
  [{ authorization: 'Bearersk-1' }, unusable('scheme')],
  [{ authorization: 'Basic Bearer sk-1' }, unusable('scheme')],
  [{ authorization: 'Basic c2s=' }, unusable('scheme')],
  [{ authorization: 'sk-1' }, unusable('scheme')],
  [{ 'x-api-key': 'sk-1' }, key('sk-1')],
  [{ 'x-api-key': ' sk-1 ' }, key('sk-1')],
  [{ 'x-api-key': '' }, MISSING],
  [{ 'x-api-key': ['sk-1', 'sk-2'] as unknown as string }, key('sk-1,sk-2')],
  [{ authorization: 'Bearer sk-1', 'x-api-key': 'sk-1' }, key('sk-1')],
  [{ authorization: 'Bearer sk-1', 'x-api-key': 'sk-2' }, unusable('ambiguous')],
  [{ authorization: 'Bearer sk-1', 'x-api-key': '' }, key('sk-1')],
  ...['api-key', 'x-goog-api-key'].flatMap((name): typeof ROWS => [
    [{ [name]: ' sk-1' }, key('sk-1')],
    [{ [name]: '' }, MISSING],
    [{ [name]: TOKEN }, unusable('console_token')],
    [{ [name]: 'sk-1', 'x-api-key': 'sk-1', authorization: 'Bearer sk-1' }, key('sk-1')],
    [{ [name]: 'sk-1', 'x-api-key': 'sk-2' }, unusable('ambiguous')],
    [{ [name]: 'sk-1', authorization: 'Bearer sk-2' }, unusable('ambiguous')],
    [{ [name]: 'sk-1', authorization: 'Basic x' }, unusable('scheme')],
  ]),
  [{ authorization: 'Bearer', 'x-api-key': 'sk-1' }, key('sk-1')],
  [{ authorization: 'Basic x', 'x-api-key': 'sk-1' }, unusable('scheme')],
  [{ authorization: `Bearer ${TOKEN}` }, unusable('console_token')],
  [{ 'x-api-key': TOKEN }, unusable('console_token')],
  [{ authorization: 'Bearer a.b.c' }, key('a.b.c')],
  [{ authorization: `Bearer x${TOKEN}.y` }, key(`x${TOKEN}.y`)],
  [
    { authorization: `Bearer ${Buffer.from('{"typ":"JWT"}').toString('base64url')}.e30.` },
    key('eyJ0eXAiOiJKV1QifQ.e30.'),
  ],
  [{ authorization: `Bearer ${Buffer.from('null').toString('base64url')}.e30.` }, key('bnVsbA.e30.')],
  [{ authorization: `Bearer ${Buffer.from('7').toString('base64url')}.e30.` }, key('Nw.e30.')],
  [{ authorization: `Bearer ${LONG}` }, key(LONG)],
  [{ authorization: `Bearer ${LONG}x` }, unusable('too_long')],
]

const OPENAI = 'openai-insecure-api-key.'
const SOCKETS: [offered: string | undefined, others: IncomingHttpHeaders, found: object][] = [
  [undefined, {}, MISSING],
  ['realtime', {}, MISSING],
  [`realtime, ${OPENAI}sk-1`, {}, key('sk-1')],
  [`${OPENAI}sk-1 ,x`, { authorization: 'Bearer sk-1' }, key('sk-1')],
  [`${OPENAI}sk-1`, { 'x-api-key': 'sk-2' }, unusable('ambiguous')],
  [`${OPENAI}sk-1,${OPENAI}sk-2`, {}, unusable('ambiguous')],
  [OPENAI, {}, MISSING],
  [`x-${OPENAI}sk-1`, {}, MISSING],
]

describe('the key of a request', () => {
  for (const [headers, found] of ROWS)
    it(`is read off ${JSON.stringify(headers).slice(0, 80)}`, () =>
      assert.deepEqual(readCredential(headers), found))

  for (const [offered, others, found] of SOCKETS)
    it(`is read off the subprotocols ${offered}, beside ${Object.keys(others)}`, () => {
      const headers = {
        upgrade: 'websocket',
        'sec-websocket-protocol': offered,
        ...others,
      } as IncomingHttpHeaders
      assert.deepEqual(readCredential(headers), found)
    })

  it('is in no subprotocol of a request that is no handshake', () => {
    assert.deepEqual(readCredential({ 'sec-websocket-protocol': `${OPENAI}sk-1` }), MISSING)
    assert.deepEqual(
      readCredential({ 'sec-websocket-protocol': `${OPENAI}sk-1`, 'x-api-key': 'sk-2' }),
      key('sk-2'),
    )
  })
})

it('a credential that is no key is refused with what to send', async (t) => {
  const served = await serveApp((app) => {
    app.use(authenticate({ keys: memoryKeyDirectory({ accounts: [], keys: [] }) }), errorEnvelope())
  })
  t.after(() => served.close())
  const rows: [headers: Record<string, string>, message: RegExp][] = [
    [{ authorization: 'Bearer sk-1', 'x-api-key': 'sk-2' }, /^Different API keys were sent\. Send one only/],
    [
      { authorization: 'Basic c2s=' },
      /^The Authorization header has no API key\. Send it as "Authorization: Bearer/,
    ],
    [{ 'x-api-key': TOKEN }, /^A session token was sent in place of an API key\. Send an API key/],
    [{ 'x-api-key': `${LONG}x` }, /^The API key is too long/],
    [{ 'x-api-key': 'sk-1' }, /^The API key is not valid here\. Check that it was copied whole/],
  ]
  for (const [headers, message] of rows) {
    const response = await fetch(served.url, { headers })
    const { error } = (await response.json()) as { error: { code: string; message: string } }
    assert.deepEqual([response.status, error.code], [401, 'invalid_credential'])
    assert.match(error.message, message)
  }
})
