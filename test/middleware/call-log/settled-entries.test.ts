import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import express from 'express'
import request from 'supertest'
import { callOf, type OpenCall } from '../../../lib/core/call/index.ts'
import { beginCall } from '../../../lib/middleware/begin-call/index.ts'
import { type CallLogEntry, type CallLogOptions, callLog } from '../../../lib/middleware/call-log/index.ts'
import { until } from '../../support/until.ts'
import { recordingLogger } from './recording-store.ts'

/** Runs one call, and returns who writes its entry, the entries that were written, and what was logged. */
async function oneCall(
  options: Omit<CallLogOptions, 'writer'>,
  during?: (call: OpenCall) => void,
  fails = false,
) {
  const entries: CallLogEntry[] = []
  const logger = recordingLogger()
  const add = (entry: CallLogEntry) => {
    entries.push(entry)
    if (fails) throw new Error('no room')
  }
  let call: OpenCall | undefined
  const app = express().use(beginCall({ logger }), callLog({ ...options, writer: { add } }))
  app.get('/', (req, res) => {
    call = callOf(req)
    during?.(call)
    res.json({})
  })
  await request(app).get('/').expect(200)
  const ended = call as OpenCall | undefined
  assert.ok(ended)
  await until(() => ended.ended)
  return { call: ended, entries, logger }
}

describe('the entry of a call', () => {
  for (const [name, options, entryBy] of [
    ['of the writer by default', {}, 'writer'],
    ['of the writer where that is configured', { settledBy: 'writer' }, 'writer'],
    ['of the ledger where that is configured', { settledBy: 'ledger' }, 'ledger'],
  ] as const)
    it(`is ${name}, and is written at the end unless the ledger has done so`, async () => {
      let during: unknown
      const { entries } = await oneCall(options, (call) => {
        during = call.entryBy
      })
      assert.equal(during, entryBy)
      assert.equal(entries.length, 1)
    })

  it('is not written again where the ledger has written it with the charge', async () => {
    const { entries } = await oneCall({ settledBy: 'ledger' }, (call) => {
      call.entryBy = 'written'
    })
    assert.deepEqual(entries, [])
  })

  it('costs no answer where its writer throws, and the log says what has failed', async () => {
    const { call, entries, logger } = await oneCall({}, undefined, true)
    assert.equal(entries.length, 1)
    assert.equal(logger.lines.length, 1)
    const [line] = logger.lines
    assert.match(`${line?.message} ${JSON.stringify(line?.fields)}`, /call log/)
    assert.match(JSON.stringify(line?.fields), new RegExp(call.id))
  })
})

describe('callLog', () => {
  const writer = { add() {} }
  for (const [name, options] of [
    ['writer', {}],
    ['writer', { writer: {} }],
    ['writer', { writer: null }],
    ['settledBy', { writer, settledBy: 'store' }],
    ['settledBy', { writer, settledBy: '' }],
  ] as const)
    it(`refuses ${JSON.stringify(options)}, by the name of the option`, () => {
      assert.throws(() => callLog(options as unknown as CallLogOptions), {
        name: 'TypeError',
        message: new RegExp(`^callLog: .*"${name}"`),
      })
    })
})
