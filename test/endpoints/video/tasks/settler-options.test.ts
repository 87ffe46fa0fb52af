import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { MemoryTaskStore, TaskSettler } from '../../../../lib/endpoints/video/index.ts'
import { MemoryLedger } from '../../../../lib/ledger/index.ts'

describe('the settler', () => {
  it('is not made with options that cannot work', () => {
    const store = new MemoryTaskStore({ money: new MemoryLedger().holds })
    const clients = () => undefined
    assert.throws(() => new TaskSettler({ clients } as never), /"store" must be a TaskStore/)
    assert.throws(() => new TaskSettler({ store } as never), /"clients" must be a function/)
    assert.throws(() => new TaskSettler({ store, clients, concurrency: 0 }), /"concurrency"/)
    assert.throws(() => new TaskSettler({ store, clients, timeoutMs: 1.5 }), /"timeoutMs"/)
  })
})
