import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import express, { type RequestHandler } from 'express'
import fc from 'fast-check'
import request from 'supertest'
import { type CallLogEntry, callOf, readAttribution, readTags } from '../../../lib/core/call/index.ts'
import { NO_TAGS, type Tags, tagsOf } from '../../../lib/core/catalog/index.ts'
import { loadConfig } from '../../../lib/core/config/index.ts'
import { GatewayError } from '../../../lib/core/errors/index.ts'
import { chatCompletions } from '../../../lib/core/operations/index.ts'
import { authenticate, memoryKeyDirectory } from '../../../lib/middleware/authenticate/index.ts'
import { beginCall } from '../../../lib/middleware/begin-call/index.ts'
import { callLog } from '../../../lib/middleware/call-log/index.ts'
import { errorEnvelope } from '../../../lib/middleware/error-envelope/index.ts'
import { readRequest } from '../../../lib/middleware/read-request/index.ts'

function attributed(protocol: string, json: object, header?: string, own?: Tags) {
  const call = {
    principal: own ? { tags: own } : null,
    protocol: { name: protocol },
    user: null as string | null,
    tags: null as Tags | null,
  }
  readTags(call, header)
  readAttribution(call, json as Record<string, unknown>)
  return { user: call.user, tags: { ...call.tags } }
}

const SESSION = 'session_0b2a5d3c-1111-4222-8333-944455566677'

describe('the user of a call', () => {
  const users: [string, string, object, string | null][] = [
    ['OpenAI-style', 'openai', { user: 'ann', safety_identifier: 'h' }, 'ann'],
    ['a safety identifier', 'openai', { safety_identifier: 'h' }, 'h'],
    ['an empty user beside a safety identifier', 'openai', { user: ' ', safety_identifier: 'h' }, 'h'],
    ['task-style', 'ark', { safety_identifier: 'h' }, 'h'],
    ['Anthropic-style', 'anthropic', { metadata: { user_id: 'bob' }, user: 'ann' }, 'bob'],
    ['no text', 'openai', { user: { name: 'ann' } }, null],
    ['a number', 'anthropic', { metadata: { user_id: 7 } }, null],
    ['metadata that is not an object', 'anthropic', { metadata: 'bob' }, null],
    ['none', 'openai', {}, null],
    [
      'a session of Claude Code',
      'anthropic',
      { metadata: { user_id: `user_1_account__${SESSION}` } },
      'user_1_account_',
    ],
    [
      'a session of Claude Code, in JSON with an account and what its user adds',
      'anthropic',
      { metadata: { user_id: `{"x":1,"device_id":"1","account_uuid":"2","session_id":"${SESSION}"}` } },
      'user_1_account_2',
    ],
    ['other JSON', 'anthropic', { metadata: { user_id: '{"device_id":"1"}' } }, '{"device_id":"1"}'],
    ['a text that begins like JSON but is not JSON', 'openai', { user: '{ann' }, '{ann'],
    ['control characters', 'openai', { user: 'a\nb\u0000c' }, 'a?b?c'],
    ['a long user', 'openai', { user: 'x'.repeat(500) }, 'x'.repeat(128)],
    [
      'a long user with a surrogate pair at the limit',
      'openai',
      { user: `${'x'.repeat(127)}é` },
      'x'.repeat(127),
    ],
  ]
  for (const [what, protocol, body, user] of users)
    it(`is read: ${what}`, () => assert.equal(attributed(protocol, body).user, user))

  it('is the same in each session of Claude Code, in every format that its versions write', () => {
    const device = 'a'.repeat(64)
    const account = '0b2a5d3c-9999-4222-8333-944455566677'
    for (const uuid of ['', account])
      fc.assert(
        fc.property(fc.uuid(), fc.uuid(), (one, other) => {
          const named = (user_id: string) => attributed('anthropic', { metadata: { user_id } }).user
          const json = (session_id: string) =>
            JSON.stringify({ device_id: device, account_uuid: uuid, session_id })
          const name = named(`user_${device}_account_${uuid}_session_${one}`)
          assert.equal(name, `user_${device}_account_${uuid}`)
          assert.deepEqual([named(json(one)), named(json(other))], [name, name])
        }),
      )
  })

  it('is at most 128 bytes, and never cut within a character', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'binary', maxLength: 300 }), (given) => {
        const { user } = attributed('openai', { user: given })
        if (user === null) return
        assert.ok(Buffer.byteLength(user) <= 128 && user.isWellFormed() && !user.includes('\n'))
        assert.ok(!user.endsWith('\ufffd') || given.toWellFormed().includes('\ufffd'))
      }),
      { numRuns: 40 },
    )
  })
})

describe('the tags of a call', () => {
  const many = (count: number) => Array.from({ length: count }, (_, i) => `n${i}=v`).join(',')
  const headers: [string, Tags][] = [
    ['team=search,env=prod', { env: 'prod', team: 'search' }],
    [' team = search , env=a b=c ', { env: 'a b=c', team: 'search' }],
    ['', {}],
    ['constructor=x,__proto__=y', JSON.parse('{"__proto__":"y","constructor":"x"}')],
    [many(16), Object.fromEntries(Array.from({ length: 16 }, (_, i) => [`n${i}`, 'v']))],
  ]
  for (const [header, tags] of headers)
    it(`are those of the header "${header.slice(0, 40)}"`, () =>
      assert.equal(
        JSON.stringify(Object.entries(attributed('openai', {}, header).tags).sort()),
        JSON.stringify(Object.entries(tags).sort()),
      ))

  const malformed = [
    'team',
    '=x',
    'team=',
    'a=1,a=2',
    'a=1,,b=2',
    `${'n'.repeat(65)}=v`,
    `n=${'v'.repeat(65)}`,
    many(17),
    'a=\u00e9',
    'a"=1',
  ]
  for (const header of malformed)
    it(`cannot be read from "${header.slice(0, 40)}"`, () => {
      const refused = (error: unknown) => {
        assert.ok(error instanceof GatewayError)
        return error.code === 'invalid_request' && error.param === 'X-Gateway-Tags'
      }
      assert.throws(() => attributed('openai', {}, header), refused)
    })

  it('are the pairs of OpenAI-style metadata that are valid tags; the header has precedence, and the key over both', () => {
    const metadata = {
      team: 'ads',
      env: 'dev',
      trace: 'x'.repeat(65),
      n: 7,
      topic: '語',
      '': 'y',
      'a=b': 'c',
    }
    const { tags } = attributed('openai', { metadata }, 'env=prod,cost=c1', { cost: 'c0' })
    assert.deepEqual(tags, { cost: 'c0', env: 'prod', team: 'ads', topic: '語' })
    assert.deepEqual(attributed('anthropic', { metadata: { team: 'ads' } }).tags, {})
  })

  it('are at most sixteen, bounded, sorted and the same for the same pairs, for any input', () => {
    const text = fc.oneof(
      fc.string({ unit: 'binary', maxLength: 70 }),
      fc.constantFrom('team', '__proto__', '1', '10'),
    )
    fc.assert(
      fc.property(fc.array(fc.tuple(text, text), { maxLength: 30 }), (pairs) => {
        const given = attributed('openai', { metadata: Object.fromEntries(pairs) }, undefined, NO_TAGS)
        assert.ok(Object.keys(given.tags).length <= 16)
        assert.ok(Buffer.byteLength(JSON.stringify(given.tags)) <= 16 * (2 * 128 + 6))
        if (new Set(pairs.map(([name]) => name)).size > 16) return
        const other = attributed('openai', {
          metadata: Object.fromEntries([...pairs].reverse().concat(pairs)),
        })
        assert.equal(JSON.stringify(other.tags), JSON.stringify(given.tags))
      }),
    )
  })
})

it('a key with tags keeps them, a malformed header is refused before the handler, and the tags never reach another tenant', async () => {
  const entries: CallLogEntry[] = []
  let handled = 0
  const keys = memoryKeyDirectory({
    accounts: [{ id: 'acme' }, { id: 'globex' }],
    keys: [
      { id: 'k1', account: 'acme', secret: 'sk-1' },
      { id: 'k2', account: 'globex', secret: 'sk-2' },
    ],
  })
  const tagged = {
    async find(hash: string) {
      const record = await keys.find(hash)
      return record?.id === 'k1' ? { ...record, tags: { team: 'search' } } : record
    },
  }
  const app = express()
    .use(
      beginCall(),
      callLog({ writer: { add: (entry) => void entries.push(entry) } }),
      authenticate({ keys: tagged }),
    )
    .get('/', (_req, res) => {
      handled++
      res.end()
    })
    .use(errorEnvelope())
  const ask = (secret: string, tags: string) =>
    request(app)
      .get('/')
      .set({ authorization: `Bearer ${secret}`, 'x-gateway-tags': tags })
  await ask('sk-1', 'team=ads,env=prod').expect(200)
  await ask('sk-2', 'team=ads').expect(200)
  const { body } = await ask('sk-2', 'team').expect(400)
  assert.equal(body.error.param, 'X-Gateway-Tags')
  assert.equal(handled, 2)
  assert.deepEqual(
    entries.map(({ tags }) => ({ ...tags })),
    [{ env: 'prod', team: 'search' }, { team: 'ads' }, {}],
  )
})

it('tags that the app sets before a key is checked or a body is read are kept, for any input of a caller', async () => {
  const { catalog, keys: listed } = loadConfig({
    accounts: [{ id: 'acme' }],
    keys: [{ id: 'k1', account: 'acme', secret: 'sk-1', tags: { team: 'search' } }],
    models: [{ id: 'm', kind: 'chat' }],
    lines: [
      {
        id: 'line',
        provider: 'openai',
        protocol: 'openai',
        baseUrl: 'https://api.example.com/v1',
        apiKey: 'sk-up',
        models: { m: 'm' },
      },
    ],
  })
  const keys = memoryKeyDirectory({ accounts: [{ id: 'acme' }], keys: listed })
  const own: RequestHandler = (req, _res, next) => {
    callOf(req).tags = tagsOf([['team', 'billing']])
    next()
  }
  const answer: RequestHandler = (req, res) => void res.json(callOf(req).tags)
  const read = readRequest({ catalog, operation: chatCompletions })
  const app = express()
    .use(beginCall())
    .post('/before', own, authenticate({ keys }), read, answer)
    .post('/between', authenticate({ keys }), own, read, answer)
    .post('/never', authenticate({ keys }), read, answer)
    .use(errorEnvelope())
  const ask = async (path: string, header: object) => {
    const asked = request(app)
      .post(path)
      .set({ authorization: 'Bearer sk-1', ...header })
    const { body } = await asked.send({ model: 'm', messages: [{ role: 'user', content: 'hi' }] }).expect(200)
    return body
  }
  for (const header of [{}, { 'x-gateway-tags': 'team=ads,env=prod' }]) {
    assert.deepEqual(await ask('/before', header), { team: 'billing' })
    assert.deepEqual(await ask('/between', header), { team: 'billing' })
  }
  assert.deepEqual(await ask('/never', {}), { team: 'search' })
  assert.deepEqual(await ask('/never', { 'x-gateway-tags': 'team=ads,env=prod' }), {
    env: 'prod',
    team: 'search',
  })
})
