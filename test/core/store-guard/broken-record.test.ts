import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { BrokenRecord, StoreAway, StoreGuard } from '../../../lib/core/store-guard/index.ts'
import { recordingLogger } from '../../support/app-server.ts'

describe('a record that is broken', () => {
  for (const how of ['run', 'insist', 'retry'] as const)
    it(`counts as an answer of its store, so that no outage begins: ${how}`, async () => {
      const logger = recordingLogger()
      const changes: boolean[] = []
      const guard = new StoreGuard({ name: 's', logger, onStoreChange: (away) => changes.push(away) })
      const broken = new BrokenRecord('no such form')
      await assert.rejects(
        guard[how](() => Promise.reject(broken)),
        (error) => error instanceof StoreAway && error.cause === broken,
      )
      assert.deepEqual([guard.away, changes, logger.lines], [false, [], []])
      await assert.rejects(
        guard[how](() => Promise.reject(new Error('refused'))),
        StoreAway,
      )
      assert.equal(guard.away, how !== 'retry')
    })
})
