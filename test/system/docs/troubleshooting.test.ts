import assert from 'node:assert/strict'
import { before, describe, it } from 'node:test'
import type { CallLogEntry } from '../../../lib/middleware/call-log/index.ts'
import { blocksOf } from '../../docs/pages.ts'
import { cleaningUp } from '../../support/clean-up.ts'
import {
  chat,
  type GatewayProcess,
  lookUp,
  post,
  startGatewayProcess,
} from '../../support/gateway-process.ts'

const PAGE = 'docs/troubleshooting.md'

/** The parts of an entry that the page shows: they stand there without the braces around them. */
const shown = blocksOf([PAGE])
  .filter(({ language, code }) => language === 'json' && code.startsWith('"'))
  .map(({ code }) => JSON.parse(`{${code}}`) as Partial<CallLogEntry>)

const TIMES: ReadonlySet<string> = new Set(['connect_ms', 'first_byte_ms', 'duration_ms'])

/** How long it took is another time each time. */
function withoutTimes(value: unknown): unknown {
  return JSON.parse(JSON.stringify(value, (name, member) => (TIMES.has(name) ? 0 : member)))
}

describe('the entries that the page on troubleshooting shows', () => {
  let gateway: GatewayProcess
  const cleanUp = cleaningUp()
  before(async () => {
    gateway = await startGatewayProcess()
    cleanUp.after(() => gateway.stop())
  })

  const requests = [chat('chat-failover')]
  it('are found', () => assert.equal(shown.length, requests.length))

  for (const [i, request] of requests.entries()) {
    it(`are what the call log has of ${request.model}`, async () => {
      const answer = await post(gateway.url, request)
      await answer.arrayBuffer()
      const entry = await lookUp(gateway.url, answer.headers.get('x-request-id'))
      const part = Object.fromEntries(
        Object.keys(shown[i] ?? {}).map((name) => [name, entry[name as keyof CallLogEntry]]),
      )
      assert.deepEqual(withoutTimes(part), withoutTimes(shown[i]))
    })
  }
})
