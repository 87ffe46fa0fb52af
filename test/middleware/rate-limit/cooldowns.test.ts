import assert from 'node:assert/strict'
import { beforeEach, describe, it } from 'node:test'
import { Cooldowns } from '../../../lib/middleware/rate-limit/cooldowns.ts'
import { demand, limit as limitOf } from './demands.ts'

/** When the first refusal comes. */
const START = 1_000_000
const RPM = limitOf('rpm', 'key', 60)
const TPM = limitOf('tpm', 'key', 1000)
const LIMITS = [RPM, TPM]

let cooldowns: Cooldowns
beforeEach(() => {
  cooldowns = new Cooldowns()
})

/** What a sender is told that a limit refuses `ms` after the start, where the window ends `START + 60 s`. */
const refused = (ms: number, { sender = 'key', limit = RPM, waitMs = 60_000 - ms } = {}) =>
  cooldowns.refused(sender, limit, demand(LIMITS), waitMs, START + ms)
const owed = (ms: number, sender = 'key', limits = LIMITS) =>
  cooldowns.owed(sender, demand(limits), START + ms)
const admitted = (ms: number, sender = 'key') => cooldowns.admitted(sender, demand(LIMITS), START + ms)
const ended = (ms: number, sender = 'key') => cooldowns.ended(sender, START + ms)
const slotRefused = (ms: number, sender = 'key') => cooldowns.slotRefused(sender, START + ms)

describe('a refused sender that asks again', () => {
  it('owes nothing beyond what its limit says where it was refused once', () => {
    assert.equal(refused(0), 60_000)
    assert.equal(owed(1), undefined)
    assert.equal(owed(59_999), undefined)
  })

  it('within the second in which its request may have been on its way is told the rest', () => {
    refused(0)
    assert.equal(refused(1000), 59_000)
    assert.equal(owed(1001), undefined)
  })

  it('later than that waits a second longer, and then owes the wait whatever its limit has left', () => {
    refused(0)
    assert.equal(refused(1001), 59_999)
    assert.deepEqual(owed(1002), { waitMs: 60_000, refusedBy: RPM }, 'no wait is longer')
    assert.deepEqual(owed(21_001), { waitMs: 41_001, refusedBy: RPM })
    assert.deepEqual(owed(21_001), { waitMs: 42_001, refusedBy: RPM })
  })

  it('waits the longest wait there is and not longer', () => {
    refused(0)
    assert.equal(refused(1001), 59_999)
    for (let i = 0; i < 5; i++) assert.equal(owed(1001)?.waitMs, 60_000)
    cooldowns = new Cooldowns()
    refused(0, { waitMs: 2000 })
    assert.equal(refused(1500, { waitMs: 60_000 }), 60_000)
  })

  it('is told the longer of the new limit’s wait and its own', () => {
    refused(0, { waitMs: 5000 })
    assert.equal(refused(2000, { waitMs: 1000 }), 4000, 'the 3 s of its own, and one more')
    cooldowns = new Cooldowns()
    refused(0, { waitMs: 5000 })
    assert.equal(refused(2000, { waitMs: 30_000 }), 31_000)
  })

  it('owes it to the limit that refused last', () => {
    refused(0, { limit: RPM })
    refused(2000, { limit: TPM })
    assert.equal(owed(3000)?.refusedBy, TPM)
  })

  it('at the time that it was told first is not early, and still waits for its penalties', () => {
    refused(0)
    refused(5000)
    assert.equal(owed(59_999)?.waitMs, 1001 + 1000)
    assert.equal(owed(60_000)?.waitMs, 2000)
    assert.equal(owed(61_999)?.waitMs, 1)
    assert.equal(owed(62_000), undefined)
  })

  it('after the time that it was told first begins a wait of its own', () => {
    refused(0, { waitMs: 5000 })
    refused(2000, { waitMs: 3000 })
    assert.equal(refused(5000, { waitMs: 7000 }), 7000)
    assert.equal(owed(5001), undefined)
    assert.equal(refused(6000, { waitMs: 6000 }), 6000, 'a second has not passed since')
    assert.equal(refused(6001, { waitMs: 5999 }), 6999)
  })

  it('may come back as soon as the shortest wait that it was told is over', () => {
    refused(0, { waitMs: 30_000 })
    assert.equal(refused(500, { waitMs: 4500 }), 4500)
    assert.equal(refused(5000, { waitMs: 10_000 }), 10_000)
    assert.equal(owed(5001), undefined)
  })

  it('does so in the time of the first refusal, where a later one tells a longer wait', () => {
    refused(0, { waitMs: 5000 })
    refused(2000, { waitMs: 20_000 })
    assert.equal(owed(5000)?.waitMs, 18_000, 'nothing is added')
    assert.equal(owed(5000)?.waitMs, 18_000)
  })

  it('waits for the limit that refused, and for no other', () => {
    refused(0)
    refused(2000)
    assert.equal(owed(2001, 'key', [TPM]), undefined)
    assert.equal(cooldowns.refused('key', TPM, demand([TPM]), 9000, START + 3000), 9000)
    assert.equal(owed(3001, 'key', [RPM]), undefined)
  })

  it('makes no other sender wait', () => {
    refused(0)
    refused(2000)
    assert.equal(owed(2001, 'other'), undefined)
    assert.equal(refused(2001, { sender: 'other' }), 57_999)
    assert.equal(admitted(2001, 'third'), 0)
  })
})

describe('the end of a call', () => {
  it('excuses one early retry each, by those that could not know of the refusal', () => {
    refused(0)
    ended(500)
    ended(10_000)
    assert.equal(refused(20_000), 40_000)
    assert.equal(refused(20_000), 40_000)
    assert.equal(refused(20_000), 41_000)
  })

  it('excuses none where it comes so soon that its caller may be on its way anyway', () => {
    refused(0)
    ended(499)
    assert.equal(refused(20_000), 41_000)
  })

  it('excuses none once the wait is over', () => {
    refused(0, { waitMs: 5000 })
    refused(2000, { waitMs: 3000 })
    ended(5000)
    assert.equal(refused(5000, { waitMs: 9000 }), 9000)
    assert.equal(refused(7000, { waitMs: 7000 }), 8000)
  })

  it('excuses a retry up to the last millisecond of the wait', () => {
    refused(0, { waitMs: 5000 })
    refused(2000, { waitMs: 3000 })
    ended(4999)
    assert.equal(owed(4999)?.waitMs, 1001)
    assert.equal(owed(4999)?.waitMs, 2001)
  })

  it('excuses a retry of a sender that owes a wait, too, and once', () => {
    refused(0)
    assert.equal(refused(2000), 59_000)
    ended(2500)
    assert.equal(owed(3000)?.waitMs, 58_000)
    assert.equal(owed(3000)?.waitMs, 59_000)
  })

  it('excuses nothing of a sender that nobody refused', () => {
    ended(0)
    refused(0)
    assert.equal(refused(2000), 59_000)
  })

  it('excuses no other sender', () => {
    refused(0)
    refused(0, { sender: 'other' })
    ended(2000, 'other')
    assert.equal(refused(3000), 58_000)
    assert.equal(refused(3000, { sender: 'other' }), 57_000)
  })

  it('excuses nobody any more once a request of the sender was admitted since', () => {
    refused(0)
    ended(2000)
    assert.equal(admitted(3000), 57_000)
    assert.equal(refused(4000), 57_000)
  })
})

describe('an admitted request', () => {
  it('is told what is left of the wait as it was announced first', () => {
    assert.equal(admitted(0), 0)
    refused(0, { waitMs: 5000 })
    assert.equal(admitted(0), 5000)
    assert.equal(admitted(4999), 1)
    assert.equal(admitted(5000), 0)
  })

  it('is not told of penalties', () => {
    refused(0, { waitMs: 5000 })
    refused(2000, { waitMs: 3000 })
    assert.equal(admitted(4000), 1000)
    assert.equal(admitted(5500), 0)
  })

  it('makes the next refusal neither longer nor shorter', () => {
    refused(0)
    admitted(2000)
    assert.equal(refused(3000), 58_000)
  })
})

describe('a sender that was told to come back for a slot', () => {
  it('is not early for a second more than it was told', () => {
    refused(0)
    slotRefused(3000)
    assert.equal(refused(5000), 55_000)
    assert.equal(refused(5001), 55_999)
  })

  it('is excused by its own refusal alone', () => {
    refused(0)
    slotRefused(3000, 'other')
    assert.equal(refused(5000), 56_000)
  })

  it('is early no sooner than after its wait began, where the slot was refused before', () => {
    slotRefused(-2000)
    refused(0)
    assert.equal(refused(1000), 59_000)
    assert.equal(refused(1001), 59_999)
  })

  it('is remembered until that second is over, however many others come', () => {
    slotRefused(0)
    refused(500)
    for (let i = 0; i < 2000; i++) slotRefused(1999, `other ${i}`)
    assert.equal(refused(1999), 58_001)
    assert.equal(refused(2001), 58_999)
  })
})

describe('a clock that was set back', () => {
  it('makes nobody wait for a time that is longer than any wait', () => {
    refused(0)
    refused(2000)
    assert.equal(owed(-1), undefined)
    assert.equal(admitted(-1), 0)
    assert.equal(refused(-1, { waitMs: 10_000 }), 10_000)
  })

  it('still holds a wait that may be', () => {
    refused(0)
    assert.equal(admitted(0), 60_000)
  })

  it('lets no slot excuse a retry that was told a time which is far ahead now', () => {
    slotRefused(10_000)
    refused(0)
    assert.equal(refused(2000), 59_000)
  })

  it('keeps what is told of a slot where it may be', () => {
    slotRefused(2000)
    refused(0)
    assert.equal(refused(2000), 58_000)
  })
})
