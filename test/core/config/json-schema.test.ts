import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { describe, it } from 'node:test'
import { promisify } from 'node:util'
import { z } from 'zod'
import { configJsonSchema } from '../../../lib/core/config/index.ts'
import { loadConfig } from '../../support/any-config.ts'
import { configWith, KEY, LINE } from './config.ts'

const full = configWith({
  $schema: './config.schema.json',
  region: 'eu',
  bodyLimitBytes: 4096,
  accounts: [
    {
      id: 'acme',
      name: 'Acme',
      balance: '-25.5',
      limits: { rpm: 1, tpm: null, concurrency: 2 },
      regions: [],
      lineRegions: ['us'],
    },
  ],
  keys: [
    {
      ...KEY,
      enabled: false,
      expiresAt: '2027-01-01T00:00:00+01:00',
      quota: '5',
      allowIps: ['::1'],
      allowModels: ['*'],
      limits: { rpm: 3 },
    },
  ],
  models: [
    {
      id: 'chat',
      kind: 'chat',
      contextWindow: 8,
      maxOutputTokens: 4,
      features: ['json'],
      price: { perImage: '1' },
    },
  ],
  lines: [
    {
      ...LINE,
      apiKey: 'sk',
      region: 'us',
      priority: -1,
      weight: 0.5,
      timeouts: { idleMs: 1 },
      circuit: { resetMs: 1 },
      headers: { a: 'b' },
    },
  ],
  routing: { strategy: 'affinity', onDisconnect: 'drain' },
  trustProxy: ['loopback'],
  urlSigningSecret: 'x'.repeat(16),
  passThrough: [{ path: '/v1/files', model: 'chat', price: { perRequest: '0.01' } }],
})

describe('the JSON Schema of the config', () => {
  const schema = z.fromJSONSchema({ ...configJsonSchema() })
  const accepts = (source: unknown) => schema.safeParse(source).success

  it('accepts what the config accepts', () => {
    for (const source of [
      configWith(),
      full,
      ...[true, 2, '10.0.0.0/8'].map((trustProxy) => configWith({ trustProxy })),
    ]) {
      assert.doesNotThrow(() => loadConfig(source))
      assert.ok(accepts(source), JSON.stringify(schema.safeParse(source).error))
    }
  })

  it('refuses what an editor should mark: unknown members, missing ones, wrong types, wrong words', () => {
    const faulty = [
      null,
      {},
      configWith({ colour: 'red' }),
      configWith({ models: undefined }),
      configWith({ models: [{ id: 'chat' }] }),
      configWith({ models: [{ id: 'chat', kind: 'poem' }] }),
      configWith({ bodyLimitBytes: '20 MB' }),
      configWith({ lines: [{ ...LINE, models: { chat: 7 } }] }),
      configWith({ lines: [{ ...LINE, timeouts: { idle: 5 } }] }),
      configWith({ keys: [{ ...KEY, id: 'with space' }] }),
      configWith({ trustProxy: {} }),
    ]
    for (const source of faulty) {
      assert.throws(() => loadConfig(source))
      assert.ok(!accepts(source), JSON.stringify(source))
    }
  })

  it('lets members with a default be left out', () => {
    const { required } = configJsonSchema() as { required?: string[] }
    assert.deepEqual(required?.sort(), ['lines', 'models'])
  })

  it('is printed by "npm start -- --schema"', async () => {
    const { stdout } = await promisify(execFile)('npm', ['start', '--silent', '--', '--schema'])
    assert.deepEqual(JSON.parse(stdout), JSON.parse(JSON.stringify(configJsonSchema())))
  })
})
