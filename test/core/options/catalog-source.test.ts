import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import type { OpenCall } from '../../../lib/core/call/index.ts'
import { createCatalog } from '../../../lib/core/catalog/index.ts'
import { aCatalog, catalogFrom, neededCatalog } from '../../../lib/core/options/index.ts'

const catalog = createCatalog([], [])

describe('the catalogue of a call', () => {
  it('is the given one, or the result of a function for the call', () => {
    assert.equal(catalogFrom(catalog)(), catalog)
    const call = {} as OpenCall
    const other = createCatalog([], [])
    const from = catalogFrom((given: OpenCall) => (given === call ? other : catalog))
    assert.equal(from(call), other)
    assert.equal(from({} as OpenCall), catalog)
  })

  it('is refused if a function returns none', () => {
    for (const [none, kind] of [
      [undefined, 'undefined'],
      [{}, 'an object'],
      [{ models: {} }, 'an object'],
      [Promise.resolve(catalog), 'a promise of it'],
    ])
      assert.throws(
        () => catalogFrom(() => none as typeof catalog)(),
        new TypeError(`"catalog" must return a catalogue, not ${kind}`),
      )
  })

  it('is a required option', () => {
    for (const value of [catalog, () => catalog]) assert.equal(aCatalog.accepts(value), true)
    for (const value of [undefined, null, 7, {}, { models: {} }]) assert.equal(aCatalog.accepts(value), false)
    assert.deepEqual([aCatalog.isNeeded, neededCatalog.isNeeded], [undefined, true])
  })
})
