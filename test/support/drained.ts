import { once } from 'node:events'
import type { Writable } from 'node:stream'

/** Waits until a stream has room for more, or is closed. No listener of it stays. */
export async function drained(stream: Writable): Promise<void> {
  const over = new AbortController()
  const { signal } = over
  await Promise.race([once(stream, 'drain', { signal }), once(stream, 'close', { signal })]).catch(() => {})
  over.abort()
}
