import assert from 'node:assert/strict'
import { ConfigError } from '../../../lib/core/config/index.ts'
import { loadConfig } from '../../support/any-config.ts'

/** The faults that a config is refused with; none if it is not. */
export function faultsOf(source: unknown, env: Record<string, string> = {}): readonly string[] {
  try {
    loadConfig(source, env)
    return []
  } catch (error) {
    assert.ok(error instanceof ConfigError, String(error))
    return error.faults
  }
}
