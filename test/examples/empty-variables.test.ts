import assert from 'node:assert/strict'
import { it } from 'node:test'
import { readSettings } from '../../examples/gateway/config/environment.ts'

const NAMES = [
  'PORT',
  'HOST',
  'DATABASE_CONNECTIONS',
  'DATABASE_PARTITIONS',
  'REDIS_URL',
  'WORKERS',
  'ADMIN_TOKEN',
  'ADMIN_PORT',
  'GATEWAY_REGION',
  'SHUTDOWN_NOTICE_MS',
  'LOG_LEVEL',
]

for (const name of NAMES)
  it(`an empty ${name} is as good as none, as compose files pass it on`, () => {
    assert.deepEqual(readSettings({ [name]: '' }), readSettings({}))
  })
