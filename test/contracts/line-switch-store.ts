import assert from 'node:assert/strict'
import { afterEach, beforeEach, describe, it } from 'node:test'
import type { ChangeLog } from '../../lib/core/change-log/index.ts'
import type { LineSwitchStore } from '../../lib/management/index.ts'
import { cleaningUp } from '../support/clean-up.ts'
import { originOf } from './account-money.ts'

/** Two handles of one store to try, with nothing in it. */
export interface LineSwitchesUnderTest {
  stores: readonly [LineSwitchStore, LineSwitchStore]
  changes: ChangeLog
  close(): Promise<void>
}

/** The contract of every store of line switches. */
export function lineSwitchContract(
  name: string,
  open: () => Promise<LineSwitchesUnderTest>,
  skip: string | false = false,
): void {
  describe(`line switches: ${name}`, { skip }, () => {
    let opened: LineSwitchesUnderTest
    const cleanUp = cleaningUp(afterEach)
    beforeEach(async () => {
      opened = await open()
      cleanUp.after(() => opened.close())
    })

    it('return the switched lines to every process', async () => {
      const [one, other] = opened.stores
      assert.deepEqual(await one.all(), new Map())
      await one.set('a', false, originOf())
      await one.set('b', true, originOf())
      assert.deepEqual([...(await other.all())].sort(), [
        ['a', false],
        ['b', true],
      ])
      await other.set('a', null, originOf())
      assert.deepEqual([...(await one.all())], [['b', true]])
    })

    it('record the state before and after, and nothing if it is the same', async () => {
      const [one, other] = opened.stores
      const origin = originOf('ada')
      await one.set('a', false, origin)
      await other.set('a', false, originOf())
      await other.set('b', null, originOf())
      await other.set('a', null, originOf())
      const [last, first, ...rest] = await opened.changes.list({ limit: 10 })
      assert.deepEqual(rest, [])
      const change = { action: 'line.switched', subject: 'a' }
      assert.deepEqual(first, { ...origin, ...change, before: { enabled: null }, after: { enabled: false } })
      assert.deepEqual([last?.before, last?.after], [{ enabled: false }, { enabled: null }])
    })

    it('count how often rests were lifted, and record the rests', async () => {
      const [one, other] = opened.stores
      assert.deepEqual(await one.lifts(), new Map())
      const origin = originOf('ada')
      const rests = [{ model: 'm', rest_ms: 1500 }]
      await one.lift('a', rests, origin)
      assert.deepEqual(await other.lifts(), new Map([['a', 1]]))
      await other.lift('b', [], originOf())
      await other.set('b', false, originOf())
      await Promise.all([one, other, one].map((store) => store.lift('a', [], originOf())))
      assert.deepEqual([...(await one.lifts())].sort(), [
        ['a', 4],
        ['b', 1],
      ])
      assert.deepEqual([...(await one.all())], [['b', false]], 'no switch')
      const changes = await opened.changes.list({ subject: 'a', limit: 10 })
      assert.equal(changes.length, 4)
      assert.deepEqual(changes.at(-1), {
        ...origin,
        action: 'line.rests_lifted',
        subject: 'a',
        before: { rests },
        after: { rests: [] },
      })
    })

    it('record each of several concurrent switches in order', async () => {
      const [one, other] = opened.stores
      const asked = Array.from({ length: 10 }, (_, i) =>
        (i % 2 === 0 ? one : other).set('a', i % 2 === 0, originOf()),
      )
      await Promise.all(asked)
      const on = (await one.all()).get('a')
      const changes = await opened.changes.list({ limit: 20 })
      const sides = changes.flatMap(({ before, after }) =>
        [before, after].map((side) => JSON.stringify(side)),
      )
      const starts = sides.filter((side) => side === '{"enabled":null}')
      assert.equal(starts.length, 1, 'only the first found nothing')
      assert.ok(changes.every(({ before, after }) => JSON.stringify(before) !== JSON.stringify(after)))
      assert.equal(typeof on, 'boolean')
    })
  })
}
