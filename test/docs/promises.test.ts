import assert from 'node:assert/strict'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { describe, it } from 'node:test'
import { ROOT } from './pages.ts'

/** The promises of docs/security.md, and the tests that hold them, under `test`. */
const PROMISES: Readonly<Record<string, readonly string[]>> = {
  'No request blocks the process': [
    'system/hardening/event-loop-holds',
    'system/hardening/costs',
    'core/json/json-bounds',
  ],
  'Bodies are bounded': [
    'routing/attempt/content-encodings',
    'core/memory/body-collector',
    'chain/refused-before-the-body',
    'middleware/error-envelope/end-while-uploading',
    'middleware/read-request/body-limits',
    'core/memory/running-bodies',
    'system/hardening/held-memory',
    'system/hardening/small-heap',
  ],
  'Connections are fair': [
    'system/hardening/connection-fairness',
    'system/hardening/connection-states',
    'system/gateway/no-descriptors',
    'middleware/begin-call/connection-room',
    'middleware/begin-call/stalled-callers',
    'system/hardening/pipelined-requests',
    'middleware/begin-call/in-turn',
  ],
  'Lists, logs and refusals are bounded': [
    'core/json-api/lists',
    'system/hardening/nothing-kept',
    'middleware/call-log/coalesced-entries',
  ],
  'One account harms no other': [
    'routing/lines/circuit-scenarios',
    'routing/attempt/fault-table',
    'routing/lines/resting-line',
    'contracts/limit-wait',
    'system/chaos/large-kept-answers',
    'system/chaos/locked-rows',
    'system/chaos/unwritable-charges',
    'stores/redis/broken-keys',
  ],
  'Objects of others are not found': [
    'middleware/references/members',
    'middleware/forward/owned/owned-resources',
    'middleware/forward/owned/owned-request',
    'middleware/forward/body-checks/form',
  ],
  'Secrets stay secret': [
    'middleware/forward/upstream-credentials',
    'routing/attempt/redact-upstream-text',
    'system/hardening/secrets',
    'system/hardening/key-lookups',
    'management/operators/wrong-tokens',
  ],
  'Input is unambiguous': [
    'middleware/read-request/members',
    'system/hardening/request-smuggling',
    'middleware/begin-call/server-refusals',
    'system/hardening/poisoned-bodies',
    'system/hardening/paths-and-heads',
    'system/hardening/log-injection',
  ],
  'Sessions end with their key': ['system/hardening/key-end', 'endpoints/video/content/content-key-end'],
  'Downloads stay outside your network': ['core/public-address/public-address'],
  'Nothing runs twice unseen': [
    'routing/attempt/kept-alive-death',
    'middleware/idempotency/lost-own-handler',
  ],
  'A store that fails costs one call': [
    'system/hardening/own-stores',
    'system/hardening/own-stores-behind',
    'system/hardening/own-functions',
    'stores/redis/unfit-redis',
    'system/chaos/many-dead-leases',
    'system/chaos/arrived-while-paused',
  ],
}

describe('the tests that hold a promise of the security page', () => {
  for (const [promise, paths] of Object.entries(PROMISES))
    for (const path of paths) {
      // A contract is a suite that the test of each backend runs.
      it(`${promise}: ${path} is there`, () =>
        assert.ok(['.test.ts', '.ts'].some((ending) => existsSync(join(ROOT, 'test', path + ending)))))
    }
})
