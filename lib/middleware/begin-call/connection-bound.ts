import { readFileSync } from 'node:fs'
import { PROCESS_MEMORY } from '../../core/memory/index.ts'

/** The descriptors reserved for databases and files. Connections of callers and to upstreams share the rest. */
export const OTHER_DESCRIPTORS = 128
/** With fewer, no caller could be served. */
const MIN_CONNECTIONS = 16
/** The memory of a connection with a request. */
const BYTES_PER_CONNECTION = 128 * 1024

/** Returns how many connections callers may have: each can have one to an upstream, and memory for a request. */
export function mostConnections(): number {
  const byDescriptors = (descriptorLimit() - OTHER_DESCRIPTORS) / 2
  const byMemory = PROCESS_MEMORY / BYTES_PER_CONNECTION
  return Math.max(MIN_CONNECTIONS, Math.floor(Math.min(byDescriptors, byMemory)))
}

/** Returns how many files and sockets this process may have open; Infinity where the system does not report it. */
function descriptorLimit(): number {
  try {
    return Number(/^Max open files\s+(\d+)/m.exec(readFileSync('/proc/self/limits', 'utf8'))?.[1] ?? Infinity)
  } catch {
    return Infinity
  }
}
