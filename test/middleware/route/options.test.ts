import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { loadConfig } from '../../../lib/core/config/index.ts'
import { route } from '../../../lib/middleware/route/index.ts'
import { configWith } from '../../core/config/config.ts'

const { catalog } = loadConfig(configWith())

describe('route', () => {
  for (const [options, told] of [
    [{ drainMs: 0 }, /"drainMs" must be a positive number/],
    [{ drainMs: -1 }, /"drainMs" must be a positive number/],
    [{ drainMs: Number.NaN }, /"drainMs" must be a positive number/],
    [{ onDisconnect: 'wait' }, /"onDisconnect" must be "abort" or "drain"/],
    [{ maxAttempts: 0 }, /"maxAttempts"/],
    [{ catalog: undefined }, /"catalog"/],
  ] as const)
    it(`is not made with ${Object.keys(options)} ${String(Object.values(options))}`, () =>
      assert.throws(() => route({ catalog, ...options } as never), { name: 'TypeError', message: told }))

  it('is made with the least that is allowed', () => {
    for (const options of [
      {},
      { drainMs: 1 },
      { onDisconnect: 'drain' as const },
      { onDisconnect: 'abort' as const },
    ])
      assert.doesNotThrow(() => route({ catalog, ...options }))
  })
})
