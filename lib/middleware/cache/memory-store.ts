import type { KeyvStoreAdapter } from 'keyv'
import { FairQueue } from '../../core/fair-queue/index.ts'
import { withinMemory } from '../../core/memory/index.ts'
import { ownerIn } from './cacheable.ts'

/** The most memory that answers take, in bytes. */
const MAX_BYTES = withinMemory(64 * 1024 * 1024)
/** A character may take two bytes. */
const CHAR_BYTES = 2
/** The bytes of an entry beside its texts. */
const FRAME_BYTES = 512

/**
 * Returns a store in this process's memory. Once it is full, the owner with the most makes room: the answers that were not
 * asked for the longest are dropped.
 */
export function memoryStore(maxBytes = MAX_BYTES): KeyvStoreAdapter {
  const kept = new Map<string, string>()
  /** The keys of each owner, in the order in which they were kept or asked for. */
  const order = new FairQueue<string>({ maxBytes })

  function drop(key: string): boolean {
    order.delete(ownerIn(key), key)
    return kept.delete(key)
  }

  function use(key: string, value: string): void {
    const owner = ownerIn(key)
    order.delete(owner, key)
    for (const dropped of order.add(owner, key, sizeOf(value, key))) kept.delete(dropped)
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
    // A Keyv keeps the end of an answer with it, and deletes what has ended.
    async set(key: string, value: string) {
      kept.set(key, value)
      use(key, value)
    },
    async delete(key) {
      return drop(key)
    },
    async clear() {
      kept.clear()
      order.clear()
    },
  }
}

function sizeOf(value: string, key: string): number {
  return CHAR_BYTES * (value.length + key.length) + FRAME_BYTES
}
