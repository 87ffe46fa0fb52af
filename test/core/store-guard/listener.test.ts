import assert from 'node:assert/strict'
import { it } from 'node:test'
import { StoreAway, StoreGuard } from '../../../lib/core/store-guard/index.ts'

it('a listener that throws neither keeps a store away nor affects its operations', async () => {
  const told: string[] = []
  const tell = (_fields: object, message: string) => void told.push(message)
  const guard = new StoreGuard({
    name: 'store',
    probeMs: 0,
    logger: { info: tell, warn: tell, error: tell },
    onStoreChange: () => {
      throw new Error('a broken metric')
    },
  })
  await assert.rejects(
    guard.run(() => Promise.reject(new Error('down'))),
    StoreAway,
  )
  assert.equal(guard.away, true)
  assert.equal(await guard.run(async () => 'answer'), 'answer')
  assert.equal(guard.away, false)
  assert.equal(told.filter((message) => message === 'a listener to store outages failed').length, 2)
})
