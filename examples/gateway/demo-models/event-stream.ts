import { once } from 'node:events'
import type { ServerResponse } from 'node:http'
import { setTimeout as sleep } from 'node:timers/promises'

/**
 * Writes frames one by one, `paceMs` apart, and no faster than the caller reads. Frames are produced on demand. When the
 * signal aborts, because the caller has left, no further frame is produced and the promise rejects with the abort.
 */
export async function writeFrames(
  res: ServerResponse,
  frames: Iterable<string>,
  paceMs: number,
  signal: AbortSignal,
): Promise<void> {
  for (const frame of frames) {
    if (paceMs > 0) await sleep(paceMs, undefined, { signal })
    signal.throwIfAborted()
    if (!res.write(frame)) await once(res, 'drain', { signal })
  }
}
