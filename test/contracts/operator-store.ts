import assert from 'node:assert/strict'
import { afterEach, beforeEach, describe, it } from 'node:test'
import type { ChangeLog } from '../../lib/core/change-log/index.ts'
import type { OperatorStore, StoredOperator } from '../../lib/management/index.ts'
import { cleaningUp } from '../support/clean-up.ts'
import { originOf } from './account-store.ts'

/** Two handles of one store to try, with nothing in it. */
export interface OperatorStoreUnderTest {
  stores: readonly [OperatorStore, OperatorStore]
  changes: ChangeLog
  close(): Promise<void>
}

/** The contract of every store of operators. */
export function operatorStoreContract(
  name: string,
  open: () => Promise<OperatorStoreUnderTest>,
  skip: string | false = false,
): void {
  describe(`operators: ${name}`, { skip }, () => {
    let opened: OperatorStoreUnderTest
    const cleanUp = cleaningUp(afterEach)
    beforeEach(async () => {
      opened = await open()
      cleanUp.after(() => opened.close())
    })

    const make = (id: string, role: StoredOperator['role'] = 'viewer', origin = originOf()) =>
      opened.stores[0].create({ id, name: `Name of ${id}`, role, tokenHash: `hash-${id}` }, origin)

    it('are found by their token through every handle, and by no other text', async () => {
      const [, other] = opened.stores
      const ada = await make('op_1', 'finance')
      await make('op_2')
      assert.equal(ada?.role, 'finance')
      assert.deepEqual(await other.findByToken('hash-op_1', 0), ada)
      assert.deepEqual(await other.find('op_1'), ada)
      assert.deepEqual(
        (await other.list({ limit: 10 })).map(({ id }) => id),
        ['op_1', 'op_2'],
      )
      assert.deepEqual(
        (await other.list({ after: 'op_1', limit: 10 })).map(({ id }) => id),
        ['op_2'],
      )
      for (const hash of ['', 'hash', 'op_1', 'HASH-OP_1', 'null'])
        assert.equal(await other.findByToken(hash, 0), undefined)
    })

    it('have unique names, also after concurrent creations and renamings', async () => {
      const [one, other] = opened.stores
      const made = await Promise.all(
        Array.from({ length: 8 }, (_, i) =>
          (i % 2 === 0 ? one : other).create(
            { id: `op_${i}`, name: 'Ada', role: 'viewer', tokenHash: `hash-${i}` },
            originOf(),
          ),
        ),
      )
      assert.equal(made.filter((each) => each !== undefined).length, 1)
      await Promise.all(['a', 'b'].map((id) => make(`op_${id}`)))
      const renamed = await Promise.all([
        one.change('op_a', { name: 'Bob' }, originOf()),
        other.change('op_b', { name: 'Bob' }, originOf()),
      ])
      assert.equal(renamed.filter((each) => each === 'taken').length, 1)
      assert.equal((await one.list({ limit: 20 })).filter(({ name }) => name === 'Bob').length, 1)
    })

    it('change their role, which is recorded once, without a token or its hash', async () => {
      const [one, other] = opened.stores
      await make('op_1')
      const origin = originOf('ada')
      const changed = await other.change('op_1', { role: 'support' }, origin)
      assert.ok(changed && changed !== 'taken')
      assert.equal((await one.findByToken('hash-op_1', 0))?.role, 'support')
      assert.deepEqual(await one.change('op_1', { role: 'support' }, originOf()), changed)
      assert.equal(await one.change('op_9', { role: 'admin' }, originOf()), undefined)
      const [last, first, ...rest] = await opened.changes.list({ limit: 10 })
      assert.deepEqual(rest, [])
      const name = 'Name of op_1'
      assert.deepEqual(last, {
        ...origin,
        action: 'operator.changed',
        subject: 'op_1',
        before: { name, role: 'viewer' },
        after: { name, role: 'support' },
      })
      assert.deepEqual([first?.action, first?.before], ['operator.created', null])
    })

    it('keep the previous token for the time of the rotation, and no earlier one', async () => {
      const [one, other] = opened.stores
      await make('op_1')
      await make('op_2')
      await one.rotate('op_1', 'second', 5000, originOf())
      assert.equal((await other.findByToken('hash-op_1', 4999))?.id, 'op_1')
      assert.equal(await other.findByToken('hash-op_1', 5000), undefined)
      assert.equal((await other.findByToken('second', 9000))?.previousUntil, 5000)
      await other.rotate('op_1', 'third', 7000, originOf())
      assert.equal(await one.findByToken('hash-op_1', 0), undefined)
      assert.equal((await one.findByToken('second', 6999))?.id, 'op_1')
      await one.rotate('op_1', 'fourth', null, originOf())
      for (const gone of ['second', 'third']) assert.equal(await one.findByToken(gone, 0), undefined)
      assert.equal((await one.findByToken('fourth', 0))?.id, 'op_1')
      assert.equal((await one.findByToken('hash-op_2', 0))?.id, 'op_2')
      assert.equal(await one.rotate('op_9', 'x', null, originOf()), undefined)
    })

    it('are refused at once by every handle after their deletion, also with the previous token', async () => {
      const [one, other] = opened.stores
      await make('op_1')
      await one.rotate('op_1', 'second', 5000, originOf())
      assert.equal(await other.delete('op_1', originOf()), true)
      for (const gone of ['hash-op_1', 'second']) assert.equal(await one.findByToken(gone, 0), undefined)
      assert.equal(await one.delete('op_1', originOf()), false)
      const actions = (await opened.changes.list({ limit: 10 })).map(({ action }) => action)
      assert.deepEqual(actions, ['operator.deleted', 'operator.rotated', 'operator.created'])
      assert.ok(!JSON.stringify(await opened.changes.list({ limit: 10 })).includes('hash'))
      assert.ok(await make('op_3'), 'the name is free')
    })
  })
}
