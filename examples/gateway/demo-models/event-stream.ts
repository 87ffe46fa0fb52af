import { once } from 'node:events'
import type { ServerResponse } from 'node:http'
import { setTimeout as pause } from 'node:timers/promises'

/**
 * Writes frames one by one, `paceMs` apart, never faster than the caller reads. Frames are made as they are
 * needed: when the signal aborts (the caller has left), no further one is, and the returned promise rejects
 * with the abort.
 */
export async function writeFrames(
  res: ServerResponse,
  frames: Iterable<string>,
  paceMs: number,
  signal: AbortSignal,
): Promise<void> {
  for (const frame of frames) {
    if (paceMs > 0) await pause(paceMs, undefined, { signal })
    signal.throwIfAborted()
    if (!res.write(frame)) await once(res, 'drain', { signal })
  }
}
