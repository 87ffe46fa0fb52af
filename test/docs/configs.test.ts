import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { parse } from 'yaml'
import { loadConfig } from '../../lib/core/config/index.ts'
import { blocksOf } from './pages.ts'

const configs = blocksOf(['README.md', 'docs/*.md', 'lib/**/*.md']).filter(
  ({ language, code }) => language === 'yaml' && /^lines:/m.test(code),
)

/** Every variable that a config names is set. */
const env = new Proxy({}, { get: () => 'sk-0123456789abcdef' })

describe('the config files that the pages show', () => {
  it('are found', () => assert.ok(configs.length > 0))

  for (const { page, line, code } of configs) {
    it(`${page}:${line} is one that the gateway takes`, () => {
      assert.ok(loadConfig(parse(code), env).catalog.models.size > 0)
    })
  }
})
