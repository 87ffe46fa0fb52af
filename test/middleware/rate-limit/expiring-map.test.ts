import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { Cooldowns } from '../../../lib/middleware/rate-limit/cooldowns.ts'
import { ExpiringMap } from '../../../lib/middleware/rate-limit/expiring-map.ts'
import { demand, limit } from './demands.ts'

interface Ending {
  endsAt: number
  worth?: number
}

const mapOf = (maxSize?: number) =>
  new ExpiringMap<Ending>(
    ({ endsAt }) => endsAt,
    ({ worth = 0 }) => worth,
    maxSize,
  )

describe('a map whose values end', () => {
  it('holds at most twice what has not ended, while others come', () => {
    const map = mapOf()
    for (let at = 0; at < 20_000; at++) {
      map.set(`k${at}`, { endsAt: at + 500 }, at)
      assert.ok(map.size <= 1010, `${map.size} at ${at}`)
    }
    for (let i = 19_500; i < 20_000; i++) assert.equal(map.get(`k${i}`)?.endsAt, i + 500)
  })

  it('keeps everything that has not ended, however much comes', () => {
    const map = mapOf()
    for (let i = 0; i < 10_000; i++) map.set(`k${i}`, { endsAt: 1 }, 0)
    assert.equal(map.size, 10_000)
  })

  it('never grows beyond its maximum size, and takes every new key', () => {
    for (const maxSize of [1, 7, 100]) {
      const map = mapOf(maxSize)
      for (let i = 0; i < 5000; i++) {
        map.set(`k${i}`, { endsAt: 1 }, 0)
        assert.ok(map.size <= maxSize && map.get(`k${i}`))
      }
    }
  })

  it('keeps what is worth most at its maximum size, wherever it stands, whatever floods it', () => {
    const map = mapOf(1000)
    const kept = Array.from({ length: 50 }, (_, i) => `kept${i}`)
    for (let i = 0; i < 1000; i++)
      map.set(i % 20 === 0 ? `kept${i / 20}` : `k${i}`, { endsAt: 1, worth: i % 20 === 0 ? 1 : 0.4 }, 0)
    for (let i = 0; i < 100_000; i++) map.set(`flood${i}`, { endsAt: 1, worth: (i % 5) / 10 }, 0)
    assert.deepEqual(
      kept.filter((key) => !map.get(key)),
      [],
    )
  })

  it('forgets what was worth most once it has ended, and then nothing that has not gives way', () => {
    const map = mapOf(100)
    for (let i = 0; i < 100; i++) map.set(`ending${i}`, { endsAt: 10, worth: i < 60 ? 1 : 0 }, 0)
    // Full, so that what is worth most leaves the turn of the others.
    for (let i = 0; i < 100; i++) map.set(`flood${i}`, { endsAt: 10 }, 0)
    const left = Array.from({ length: 60 }, (_, i) => `ending${i}`).filter((key) => map.get(key))
    assert.ok(left.length >= 50, `${left.length}`)
    for (let i = 0; i < 95; i++) {
      map.set(`new${i}`, { endsAt: 30 }, 20)
      for (let at = 0; at <= i; at++) assert.ok(map.get(`new${at}`), `${at} of ${i}`)
      assert.ok(map.size <= 100)
    }
    assert.deepEqual(
      left.filter((key) => map.get(key)),
      [],
    )
  })

  it('keeps the oldest of what is worth the same', () => {
    const map = mapOf(1000)
    for (let i = 0; i < 20_000; i++) map.set(`k${i}`, { endsAt: 1, worth: 1 }, 0)
    assert.ok(map.get('k0'))
  })
})

it('waits that are over are forgotten, and those that are not are kept, however many senders come', () => {
  const cooldowns = new Cooldowns()
  const rpm = limit('rpm', 's', 1)
  const asked = demand([rpm])
  cooldowns.refused('key', rpm, asked, 5000, 0)
  cooldowns.refused('key', rpm, asked, 3000, 2000)
  for (let i = 0; i < 2000; i++) cooldowns.refused(`other ${i}`, rpm, asked, 1000, 5999)
  // 5 s, and one more for the early retry.
  assert.equal(cooldowns.owed('key', asked, 5999)?.waitMs, 1)
})
