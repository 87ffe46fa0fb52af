import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { formatAmount, priceOn } from '../../../lib/core/catalog/index.ts'
import { loadConfig } from '../../support/any-config.ts'

import { configWith, LINE, MODEL } from './config.ts'

const PRICE = { inputPerMillion: '0.15', outputPerMillion: '0.60' }

describe('the loaded config', () => {
  const { catalog, ...config } = loadConfig(configWith())

  it('has the documented defaults', () => {
    assert.equal(config.region, 'local')
    assert.equal(config.bodyLimitBytes, 20 * 1024 * 1024)
    assert.deepEqual(config.routing, {
      strategy: 'priority',
      maxAttempts: 3,
      onDisconnect: 'abort',
      drainMs: 10_000,
    })
    assert.deepEqual(
      [config.onStoreError, config.onLedgerAway, config.trustProxy, config.passThrough],
      ['local', 'hold', false, []],
    )
    assert.deepEqual(config.accounts[0]?.limits, { rpm: null, tpm: null, concurrency: null })
    assert.equal(config.accounts[0]?.balance, undefined)
    assert.deepEqual(config.keys[0]?.limits, { rpm: null, tpm: null })
    assert.equal(config.keys[0]?.enabled, true)
  })

  it('has the defaults of lines', () => {
    const line = catalog.lines[0]
    assert.deepEqual(line?.timeouts, {
      connectMs: 2000,
      firstByteMs: 30_000,
      idleMs: 60_000,
      totalMs: 600_000,
    })
    assert.deepEqual(line?.circuit, { errorPercent: 50, minimumCalls: 5, windowMs: 10_000, resetMs: 10_000 })
    assert.deepEqual([line?.enabled, line?.priority, line?.weight], [true, 0, 1])
    assert.deepEqual(
      [line?.features, line?.contextWindow, line?.apiKey, line?.region, line?.endpoints],
      Array(5).fill(undefined),
    )
  })

  it('has a default for each missing member: one given timeout leaves the others at their defaults', () => {
    const given = loadConfig(configWith({ lines: [{ ...LINE, timeouts: { idleMs: 5 } }] })).catalog.lines[0]
    assert.deepEqual([given?.timeouts.idleMs, given?.timeouts.totalMs], [5, 600_000])
  })

  it('may have neither accounts nor keys', () => {
    const bare = loadConfig({ models: [MODEL], lines: [LINE] })
    assert.deepEqual([bare.accounts, bare.keys], [[], []])
  })

  it('ignores "$schema", which is for editors', () => {
    assert.equal('$schema' in loadConfig(configWith({ $schema: './config.schema.json' })), false)
  })
})

describe('the catalogue', () => {
  const { catalog } = loadConfig(
    configWith({
      models: [
        { ...MODEL, price: PRICE },
        { id: 'org/other', kind: 'chat', features: ['stream', 'stream'] },
      ],
      lines: [
        {
          ...LINE,
          id: 'b',
          baseUrl: 'https://api.example.com:8443/a/v1//',
          price: { inputPerMillion: '0.1' },
        },
        { ...LINE, id: 'a', models: { 'org/other': 'x', chat: 'y' } },
        { ...LINE, id: 'none', models: {} },
      ],
    }),
  )

  it('finds the lines of a model, in the order of the config', () => {
    const idsOf = (model: string) => catalog.linesOf(model).map(({ id }) => id)
    assert.deepEqual(idsOf('chat'), ['b', 'a'])
    assert.deepEqual(idsOf('org/other'), ['a'])
    assert.deepEqual(idsOf('__proto__'), [])
  })

  it('splits a base URL into its parts', () => {
    assert.deepEqual(
      [catalog.lines[0]?.origin, catalog.lines[0]?.basePath],
      ['https://api.example.com:8443', '/a/v1'],
    )
  })

  it('has the price of a model on a line; cached input costs as much as input by default', () => {
    const chat = catalog.models.get('chat')
    const line = catalog.lines[0]
    assert.ok(chat && line)
    assert.equal(chat.price.cachedInputPerMillion, 150_000_000n)
    assert.equal(chat.price.perRequest, 0n)
    assert.equal(priceOn(chat, line).inputPerMillion, 100_000_000n)
    assert.equal(priceOn(chat, line).outputPerMillion, 600_000_000n)
  })

  it('derives cache prices that are not set from the input price of the line', () => {
    const on = (model: object, line: object) => {
      const { catalog: one } = loadConfig(
        configWith({
          models: [{ id: 'chat', kind: 'chat', price: model }],
          lines: [{ ...LINE, price: line }],
        }),
      )
      const [chat] = one.models.values()
      const [only] = one.lines
      assert.ok(chat && only)
      const { cachedInputPerMillion, cacheWritePerMillion } = priceOn(chat, only)
      return [formatAmount(cachedInputPerMillion), formatAmount(cacheWritePerMillion)]
    }
    assert.deepEqual(on({}, { inputPerMillion: '3' }), ['3', '3'])
    assert.deepEqual(on({ inputPerMillion: '3' }, { inputPerMillion: '2' }), ['2', '2'])
    const cached = { inputPerMillion: '3', cachedInputPerMillion: '0.3' }
    assert.deepEqual(on(cached, { inputPerMillion: '2' }), ['0.3', '2'])
    assert.deepEqual(on(cached, { cacheWritePerMillion: '2.5' }), ['0.3', '2.5'])
    assert.deepEqual(on({}, { inputPerMillion: '3', cachedInputPerMillion: '0' }), ['0', '3'])
  })
})
