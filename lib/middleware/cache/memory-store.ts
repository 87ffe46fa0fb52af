import type { KeyvStoreAdapter } from 'keyv'
import { LRUCache } from 'lru-cache'
import { withinMemory } from '../../core/memory/index.ts'

/** The most memory that answers take, in bytes. */
const MAX_BYTES = withinMemory(64 * 1024 * 1024)
/** A character may take two bytes. */
const CHAR_BYTES = 2
/** The bytes of an entry beside its texts. */
const FRAME_BYTES = 512

/** Returns a store in this process's memory. Once it is full, the answers that were not asked for the longest make room. */
export function memoryStore(maxBytes = MAX_BYTES): KeyvStoreAdapter {
  const kept = new LRUCache<string, string>({
    maxSize: maxBytes,
    sizeCalculation: (value, key) => CHAR_BYTES * (value.length + key.length) + FRAME_BYTES,
  })
  return {
    opts: {},
    // It reports nothing.
    on() {
      return this
    },
    async get<Value>(key: string) {
      return kept.get(key) as Value | undefined
    },
    async set(key: string, value: string, ttl?: number) {
      kept.set(key, value, ttl === undefined ? {} : { ttl })
    },
    async delete(key) {
      return kept.delete(key)
    },
    async clear() {
      kept.clear()
    },
  }
}
