import assert from 'node:assert/strict'
import { describe, it, type TestContext } from 'node:test'
import type { OpenCall } from '../../../lib/core/call/index.ts'
import { GatewayError } from '../../../lib/core/errors/index.ts'
import type { KeyDirectory, KeyRecord } from '../../../lib/middleware/authenticate/index.ts'
import { RunningCallKeys } from '../../../lib/middleware/authenticate/running-call-keys.ts'
import { recordingLogger } from '../../support/app-server.ts'

const POLL_MS = 2000
const LOOKUP_MS = 500

/** Calls that are followed, a clock that the test sets, and what the directory is asked. */
function following(t: TestContext, find: (hash: string) => unknown, { atOnce = true } = {}) {
  t.mock.timers.enable({ apis: ['setTimeout'] })
  const asked: string[][] = []
  const directory = {
    async find(hash: string) {
      asked.push([hash])
      return find(hash)
    },
    ...(atOnce && {
      async findAll(hashes: readonly string[]) {
        asked.push([...hashes])
        const found = await Promise.all(hashes.map(async (hash) => [hash, await find(hash)] as const))
        return new Map(found.filter(([, record]) => record !== undefined))
      },
    }),
  } as unknown as KeyDirectory
  const isOver = (_call: OpenCall, record: KeyRecord | undefined) =>
    record?.enabled ? undefined : new GatewayError(record ? 'key_disabled' : 'invalid_credential')
  const sessions = new RunningCallKeys(directory, LOOKUP_MS, isOver)
  const logger = recordingLogger()
  const ended: string[] = []
  return {
    asked,
    ended,
    logger,
    /** Follows a call. Returns what runs at its end. */
    begin(id: string, secretHash: string | null, end?: () => void): () => void {
      let atEnd = (): void => {}
      const onEnd = (_name: string, run: () => void) => {
        atEnd = run
      }
      sessions.follow({ id, secretHash, logger, onEnd } as unknown as OpenCall, (error) => {
        ended.push(`${id} ${error.code}`)
        end?.()
      })
      return () => atEnd()
    },
    async pass(ms: number): Promise<void> {
      t.mock.timers.tick(ms)
      for (let i = 0; i < 10; i++) await new Promise(setImmediate)
    },
  }
}

describe('the keys of running calls', () => {
  for (const atOnce of [true, false])
    it(`are asked for every other second, each once, ${atOnce ? 'all together' : 'one by one'}`, async (t) => {
      const { begin, pass, asked, ended } = following(t, () => ({ enabled: true }), { atOnce })
      begin('a', 'one')
      begin('b', 'one')
      begin('c', 'two')
      begin('d', null)
      await pass(POLL_MS - 1)
      assert.deepEqual(asked, [])
      await pass(1)
      const once = atOnce ? [['one', 'two']] : [['one'], ['two']]
      assert.deepEqual(asked, once)
      await pass(POLL_MS)
      assert.deepEqual(asked, [...once, ...once])
      assert.deepEqual(ended, [])
    })

  it('are not asked for once no call has them, until another has', async (t) => {
    const { begin, pass, asked } = following(t, () => ({ enabled: true }))
    const over = [begin('a', 'one'), begin('b', 'two'), begin('c', 'three')]
    over[0]?.()
    over[0]?.()
    await pass(POLL_MS)
    assert.deepEqual(asked.pop()?.sort(), ['three', 'two'])
    over[2]?.()
    await pass(POLL_MS)
    assert.deepEqual(asked.pop(), ['two'])
    over[1]?.()
    await pass(3 * POLL_MS)
    assert.deepEqual(asked, [])
    begin('d', 'four')
    await pass(POLL_MS)
    assert.deepEqual(asked, [['four']])
  })

  it('are asked for until the last call of each has ended, in whatever order and however often one ends', async (t) => {
    for (const order of [
      [0, 1, 2, 3, 4],
      [4, 3, 2, 1, 0],
      [2, 0, 4, 1, 3],
      [1, 3, 0, 2, 4],
    ]) {
      const { begin, pass, asked } = following(t, () => ({ enabled: true }))
      const over = order.map((_, i) => begin(`call-${i}`, `key-${i}`))
      const left = new Set(order.map((i) => `key-${i}`))
      for (const i of order) {
        over[i]?.()
        over[i]?.()
        left.delete(`key-${i}`)
        await pass(POLL_MS)
        assert.deepEqual(new Set(asked.splice(0).flat()), left)
      }
      t.mock.timers.reset()
    }
  })

  it('judge their calls at the time of the clock', async (t) => {
    t.mock.timers.enable({ apis: ['setTimeout', 'Date'], now: 5000 })
    const seen: number[] = []
    const directory = { find: () => ({}) as KeyRecord }
    const sessions = new RunningCallKeys(directory, LOOKUP_MS, (_call, _record, at) => {
      seen.push(at)
      return undefined
    })
    sessions.follow({ secretHash: 'one', onEnd() {} } as unknown as OpenCall, () => {})
    t.mock.timers.tick(POLL_MS)
    for (let i = 0; i < 10; i++) await new Promise(setImmediate)
    assert.deepEqual(seen, [5000 + POLL_MS])
  })

  it('end their calls, each once, and no other', async (t) => {
    const records: Record<string, object> = { good: { enabled: true }, off: { enabled: false } }
    const { begin, pass, ended } = following(t, (hash) => records[hash])
    for (const [id, hash] of Object.entries({ a: 'gone', b: 'good', c: 'off', d: 'gone' })) begin(id, hash)
    await pass(POLL_MS)
    assert.deepEqual(ended.sort(), ['a invalid_credential', 'c key_disabled', 'd invalid_credential'])
    records.good = { enabled: false }
    await pass(POLL_MS)
    assert.deepEqual(ended.slice(3), ['b key_disabled'])
    await pass(2 * POLL_MS)
    assert.equal(ended.length, 4)
  })

  it('go by what was known of them while the directory fails or does not answer', async (t) => {
    let answer: () => unknown = () => Promise.reject(new Error('away'))
    const { begin, pass, ended, logger } = following(t, () => answer())
    begin('a', 'one')
    await pass(POLL_MS)
    assert.deepEqual(ended, [], 'nothing is known')
    answer = () => ({ enabled: true })
    await pass(POLL_MS)
    answer = () => new Promise(() => {})
    await pass(POLL_MS)
    await pass(LOOKUP_MS)
    answer = () => undefined
    begin('b', 'two')
    assert.deepEqual(ended, [])
    await pass(POLL_MS)
    assert.deepEqual(ended.sort(), ['a invalid_credential', 'b invalid_credential'])
    assert.deepEqual(logger.lines, [])
  })

  it('end when it was known that they would, though the directory fails by then', async (t) => {
    t.mock.timers.enable({ apis: ['setTimeout', 'Date'], now: 5000 })
    const endsAt = 5000 + 2.5 * POLL_MS
    let answer: () => unknown = () => ({ endsAt })
    const directory = { find: () => answer() } as KeyDirectory
    const isOver = (_call: OpenCall, record: KeyRecord | undefined, at: number) =>
      at < (record as unknown as { endsAt: number }).endsAt ? undefined : new GatewayError('key_disabled')
    const sessions = new RunningCallKeys(directory, LOOKUP_MS, isOver)
    const ended: unknown[] = []
    sessions.follow({ secretHash: 'one', onEnd() {} } as unknown as OpenCall, ({ code }) => {
      ended.push([Date.now(), code])
    })
    for (let i = 0; i < 4; i++) {
      t.mock.timers.tick(POLL_MS)
      for (let i = 0; i < 10; i++) await new Promise(setImmediate)
      answer = () => Promise.reject(new Error('away'))
    }
    assert.deepEqual(ended, [[5000 + 3 * POLL_MS, 'key_disabled']])
  })

  it('of a call that cannot be ended are logged, and the others end', async (t) => {
    const { begin, pass, ended, logger } = following(t, () => undefined)
    begin('a', 'one', () => {
      throw new Error('no')
    })
    begin('b', 'two')
    await pass(POLL_MS)
    assert.equal(ended.length, 2)
    const [line] = logger.lines
    assert.deepEqual(line?.fields, { err: new Error('no'), requestId: 'a' })
    assert.equal(logger.lines.length, 1)
  })

  it('of a call that begins while the directory is asked have their turn next time', async (t) => {
    let isBegun = false
    const { begin, pass, ended, asked } = following(t, () => {
      if (!isBegun) begin('b', 'two')
      isBegun = true
      return undefined
    })
    begin('a', 'one')
    await pass(POLL_MS)
    assert.deepEqual([asked, ended], [[['one']], ['a invalid_credential']])
    await pass(POLL_MS)
    assert.deepEqual([asked[1], ended[1]], [['two'], 'b invalid_credential'])
  })

  it('are asked for twenty at a time where the directory finds one at a time', async (t) => {
    const open: (() => void)[] = []
    const find = () => new Promise((resolve) => open.push(() => resolve({ enabled: true })))
    const { begin, pass, asked } = following(t, find, { atOnce: false })
    for (let i = 0; i < 25; i++) begin(`call-${i}`, `key-${i}`)
    await pass(POLL_MS)
    assert.equal(asked.length, 20)
    for (const answer of open.splice(0)) answer()
    await pass(0)
    assert.equal(asked.length, 25)
  })
})
