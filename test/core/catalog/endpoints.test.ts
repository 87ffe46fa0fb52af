import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { endpointOf } from '../../../lib/core/operations/by-path.ts'
import { OPERATIONS, servesNatively } from '../../../lib/core/operations/index.ts'
import { loadConfig } from '../../support/any-config.ts'
import { configWith, LINE } from '../config/config.ts'

const lineOf = (extra: object) => {
  const [line] = loadConfig(configWith({ lines: [{ ...LINE, ...extra }] })).catalog.lines
  assert.ok(line)
  return line
}

describe('the endpoints of a line', () => {
  for (const operation of OPERATIONS) {
    const { protocol } = operation
    const endpoint = endpointOf(operation)
    it(`can be ${endpoint}, by the name that callers use`, () => {
      assert.equal(operation.path, `/v1/${endpoint}`)
      assert.ok(servesNatively(lineOf({ protocol, endpoints: [endpoint] }), operation))
    })

    it(`include ${endpoint} if none are listed, and exclude it if the list lacks it`, () => {
      assert.ok(servesNatively(lineOf({ protocol }), operation))
      const other = OPERATIONS.find((one) => one.protocol === protocol && one !== operation)
      assert.ok(other)
      assert.equal(servesNatively(lineOf({ protocol, endpoints: [endpointOf(other)] }), operation), false)
    })
  }

  it('are only the tasks for the protocol of videos', () => {
    const ark = (endpoint: string) =>
      configWith({ lines: [{ ...LINE, protocol: 'ark', endpoints: [endpoint] }] })
    assert.doesNotThrow(() => loadConfig(ark('contents/generations/tasks')))
    assert.throws(
      () => loadConfig(ark('videos')),
      /no "ark" line has "videos"; it can have contents\/generations\/tasks/,
    )
  })

  it('are rejected with the list of valid ones if unknown', () => {
    const config = (endpoints: string[]) => configWith({ lines: [{ ...LINE, endpoints }] })
    assert.throws(
      () => loadConfig(config(['messages'])),
      /^ConfigError: lines\[0\]\.endpoints\[0\]: no "openai" line has "messages"; it can have chat\/completions, /,
    )
    assert.throws(
      () => loadConfig(config(['chat'])),
      /lines\[0\]\.endpoints\[0\]: must be the path of an endpoint without "\/v1\/", one of chat\/completions, /,
    )
  })
})
