import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { ExpiringMap } from '../../../lib/middleware/rate-limit/expiring-map.ts'

const mapOf = (maxSize?: number) => new ExpiringMap<{ endsAt: number }>(({ endsAt }) => endsAt, maxSize)

describe('a map whose values end', () => {
  it('removes what has ended when its size has doubled', () => {
    const map = mapOf()
    for (let i = 0; i < 1024; i++) map.set(`k${i}`, { endsAt: i < 24 ? 101 : 100 }, 0)
    assert.equal(map.size, 1024)
    map.set('next', { endsAt: 200 }, 100)
    assert.equal(map.size, 25)
    assert.equal(map.get('k23')?.endsAt, 101)
    assert.equal(map.get('k24'), undefined)
  })

  it('keeps everything that has not ended, however much comes', () => {
    const map = mapOf()
    for (let i = 0; i < 10_000; i++) map.set(`k${i}`, { endsAt: 1 }, 0)
    assert.equal(map.size, 10_000)
  })

  it('lets the tenth that came first give way at its maximum size', () => {
    const map = mapOf(100)
    for (let i = 0; i < 100; i++) map.set(`k${i}`, { endsAt: 1 }, 0)
    assert.equal(map.size, 100)
    map.set('next', { endsAt: 1 }, 0)
    assert.equal(map.size, 91)
    assert.deepEqual([map.get('k9'), map.get('k10')?.endsAt, map.get('next')?.endsAt], [undefined, 1, 1])
    for (let i = 0; i < 10_000; i++) map.set(`n${i}`, { endsAt: 1 }, 0)
    assert.ok(map.size <= 100, `${map.size}`)
  })

  it('keeps all others at its maximum size where enough has ended', () => {
    const map = mapOf(100)
    for (let i = 0; i < 100; i++) map.set(`k${i}`, { endsAt: i < 20 ? 1 : 3 }, 0)
    map.set('next', { endsAt: 3 }, 2)
    assert.equal(map.size, 81)
    assert.equal(map.get('k20')?.endsAt, 3)
  })
})
