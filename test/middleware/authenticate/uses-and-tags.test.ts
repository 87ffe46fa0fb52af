import assert from 'node:assert/strict'
import { afterEach, describe, it } from 'node:test'
import express from 'express'
import request from 'supertest'
import { callOf, type OpenCall } from '../../../lib/core/call/index.ts'
import {
  authenticate,
  hashSecret,
  type KeyDirectory,
  type KeyRecord,
  memoryKeyDirectory,
} from '../../../lib/middleware/authenticate/index.ts'
import { beginCall } from '../../../lib/middleware/begin-call/index.ts'
import { errorEnvelope } from '../../../lib/middleware/error-envelope/index.ts'
import { eventually, recordingLogger, serveApp } from '../../support/app-server.ts'
import { type Admission, bearer, guard } from './admission.ts'

const memory = memoryKeyDirectory({
  accounts: [{ id: 'acme' }],
  keys: [
    { id: 'one', account: 'acme', secret: 'sk-one', tags: { team: 'a' } },
    { id: 'two', account: 'acme', secret: 'sk-two', allowModels: ['chat-*'] },
    { id: 'off', account: 'acme', secret: 'sk-off', enabled: false },
  ],
})
const recordOf = (secret: string) => memory.find(hashSecret(secret)) as KeyRecord

let app: Admission | undefined
afterEach(async () => {
  await app?.close()
  app = undefined
})

describe('the use of a key', () => {
  for (const cacheKeysMs of [0, 4000])
    it(`is reported with its id and the time, once in a second for each key (cacheKeysMs ${cacheKeysMs})`, async (t) => {
      const start = Date.parse('2026-01-01T00:00:00Z')
      t.mock.timers.enable({ apis: ['Date'], now: start })
      const told: [string, number][] = []
      const onUse = (id: string, at: number) => void told.push([id, at - start])
      // Each test has a record of its own, because a record keeps the time at which its use was reported.
      const keys: KeyDirectory = memoryKeyDirectory({
        accounts: [{ id: 'acme' }],
        keys: ['one', 'two', 'off'].map((id) => ({
          id,
          account: 'acme',
          secret: `sk-${id}`,
          enabled: id !== 'off',
        })),
      })
      app = await guard({ keys, onUse, cacheKeysMs })
      for (const [at, ...ids] of [
        [0, 'one', 'two', 'one', 'off', 'none'],
        [999, 'one', 'two'],
        [1000, 'one'],
        [1001, 'one', 'two'],
        [1999, 'one'],
        [2000, 'one'],
      ] as const) {
        t.mock.timers.setTime(start + at)
        for (const id of ids) await app.ask(bearer(`sk-${id}`))
      }
      assert.deepEqual(told, [
        ['one', 0],
        ['two', 0],
        ['one', 1000],
        ['two', 1001],
        ['one', 2000],
      ])
    })
})

describe('the tags of a call', () => {
  /** Asks with what an earlier middleware has written to the call. */
  async function tagsOf(secret: string, header?: string, before?: (call: OpenCall) => void) {
    let call: OpenCall | undefined
    const own = express().use(beginCall(), (req, _res, next) => {
      before?.(callOf(req))
      next()
    })
    own.use(authenticate({ keys: memory }), (req, res) => {
      call = callOf(req)
      res.end()
    })
    const asked = request(own).get('/').set('authorization', `Bearer ${secret}`)
    await (header === undefined ? asked : asked.set('x-gateway-tags', header)).expect(200)
    return { ...call?.tags }
  }

  it('are those of its key, with those that it sends, and none where there are none', async () => {
    assert.deepEqual(await tagsOf('sk-one'), { team: 'a' })
    assert.deepEqual(await tagsOf('sk-two'), {})
    assert.deepEqual(await tagsOf('sk-one', 'job=7'), { team: 'a', job: '7' })
    assert.deepEqual(await tagsOf('sk-two', 'job=7'), { job: '7' })
  })

  it('that an earlier middleware has given it stay', async () => {
    const before = (call: OpenCall) => {
      call.tags = { of: 'the app' }
    }
    assert.deepEqual(await tagsOf('sk-one', undefined, before), { of: 'the app' })
    assert.deepEqual(await tagsOf('sk-one', 'job=7', before), { of: 'the app' })
  })
})

describe('a call whose model is known already', () => {
  for (const [model, status] of [
    ['chat-small', 200],
    ['image-small', 403],
    [null, 200],
  ] as const)
    it(`is ${status === 200 ? 'admitted' : 'refused'} with the model ${model}`, async () => {
      const own = express().use(
        beginCall({
          logger: recordingLogger(),
          onBegin(call) {
            call.model = model
          },
        }),
      )
      own.use(authenticate({ keys: memory }), (_req, res) => void res.end())
      own.use(errorEnvelope())
      const { status: got, body } = await request(own).get('/').set('authorization', 'Bearer sk-two')
      assert.equal(got, status)
      if (status === 403) assert.equal(body.error.code, 'model_not_allowed')
    })
})

describe('a running call', () => {
  it('ends with its key, whose hash it has, for the reason for which a new one is refused', async (t) => {
    let record: KeyRecord | undefined = recordOf('sk-two')
    const asked: string[] = []
    const keys: KeyDirectory = {
      find(hash) {
        asked.push(hash)
        return record
      },
    }
    let call: OpenCall | undefined
    const held = await serveApp((own) => {
      own.use(beginCall(), authenticate({ keys }), (req) => {
        call = callOf(req)
      })
    })
    t.after(() => held.close())
    const left = fetch(held.url, { headers: bearer('sk-two') }).catch(() => {})
    t.after(() => left)
    await eventually(() => call !== undefined)
    assert.ok(call)
    t.mock.timers.enable({ apis: ['setTimeout'] })
    assert.equal(call.secretHash, hashSecret('sk-two'))
    const ended: string[] = []
    const { keyWatch } = call as OpenCall
    keyWatch?.follow(call, ({ code }) => void ended.push(code))
    const look = async () => {
      t.mock.timers.tick(2000)
      for (let i = 0; i < 10; i++) await new Promise(setImmediate)
    }
    await look()
    assert.deepEqual([ended, new Set(asked).size, asked.length], [[], 1, 2])
    record = { ...record, account: { ...record.account, suspended: true } }
    await look()
    assert.deepEqual(ended, ['key_disabled'])
  })
})
