import type { KeyvStoreAdapter } from 'keyv'
import { LRUCache } from 'lru-cache'
import { withinMemory } from '../../core/memory/index.ts'
import { ownerIn } from './cacheable.ts'

/** The most memory that answers take, in bytes. */
const MAX_BYTES = withinMemory(64 * 1024 * 1024)
/** A character may take two bytes. */
const CHAR_BYTES = 2
/** The bytes of an entry beside its texts. */
const FRAME_BYTES = 512

/**
 * Returns a store in this process's memory. Once it is full, the answers that were not asked for the longest make room. An owner
 * that takes more than half of it makes room for itself.
 */
export function memoryStore(maxBytes = MAX_BYTES): KeyvStoreAdapter {
  const shares = new Map<string, Share>()
  const kept = new LRUCache<string, string>({
    maxSize: maxBytes,
    sizeCalculation: sizeOf,
    dispose: (_value, key) => leave(key),
  })

  /** Counts an answer that was kept or asked for. */
  function use(key: string, value: string): void {
    const owner = ownerIn(key)
    const share = shares.get(owner) ?? { bytes: 0, sizes: new Map() }
    shares.set(owner, share)
    const size = sizeOf(value, key)
    share.bytes += size - (share.sizes.get(key) ?? 0)
    share.sizes.delete(key)
    share.sizes.set(key, size)
  }

  function leave(key: string): void {
    const owner = ownerIn(key)
    const share = shares.get(owner)
    if (!share) return
    share.bytes -= share.sizes.get(key) ?? 0
    share.sizes.delete(key)
    if (share.sizes.size === 0) shares.delete(owner)
  }

  function makeRoom(owner: string, size: number): void {
    const share = shares.get(owner)
    if (!share) return
    for (const oldest of share.sizes.keys()) {
      if (share.bytes <= maxBytes / 2 || kept.calculatedSize + size <= maxBytes) return
      kept.delete(oldest)
    }
  }

  return {
    opts: {},
    // It reports nothing.
    on() {
      return this
    },
    async get<Value>(key: string) {
      const value = kept.get(key)
      if (value !== undefined) use(key, value)
      return value as Value | undefined
    },
    async set(key: string, value: string, ttl?: number) {
      makeRoom(ownerIn(key), sizeOf(value, key))
      kept.set(key, value, ttl === undefined ? {} : { ttl })
      if (kept.has(key)) use(key, value)
    },
    async delete(key) {
      return kept.delete(key)
    },
    async clear() {
      kept.clear()
    },
  }
}

/** The answers of one owner. */
interface Share {
  bytes: number
  /** The size of each by its key; first those that were not asked for the longest. */
  readonly sizes: Map<string, number>
}

function sizeOf(value: string, key: string): number {
  return CHAR_BYTES * (value.length + key.length) + FRAME_BYTES
}
