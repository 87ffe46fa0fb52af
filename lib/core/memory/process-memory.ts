import { getHeapStatistics } from 'node:v8'

/** The bytes that this process may take: those of its heap, or of its container if that has fewer. */
export const PROCESS_MEMORY: number = Math.min(
  getHeapStatistics().heap_size_limit,
  process.constrainedMemory() || Number.POSITIVE_INFINITY,
)

/** With as much memory or more, defaults are as they are written. */
const ENOUGH = 1024 ** 3

/** Returns a default number of bytes: in proportion less where the process may take less than 1 GiB. */
export function withinMemory(bytes: number, memory: number = PROCESS_MEMORY): number {
  return Math.ceil(bytes * Math.min(1, memory / ENOUGH))
}
