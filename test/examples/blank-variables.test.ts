import assert from 'node:assert/strict'
import { it } from 'node:test'
import { readSettings } from '../../examples/gateway/config/environment.ts'

for (const name of ['PORT', 'ADMIN_PORT', 'SHUTDOWN_NOTICE_MS', 'OTEL_TRACES_SAMPLER_ARG'])
  it(`a ${name} of blanks is refused, and is not 0`, () => {
    assert.throws(() => readSettings({ [name]: ' ' }), {
      name: 'ConfigError',
      message: new RegExp(`^${name}: `),
    })
  })
