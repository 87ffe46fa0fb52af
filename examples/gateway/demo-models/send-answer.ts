import { once } from 'node:events'
import type { ServerResponse } from 'node:http'
import { setTimeout as sleep } from 'node:timers/promises'
import type { DemoModel } from './models.ts'
import type { Rendering } from './text-endpoint.ts'

/** How fast a model answers. */
export interface Pace {
  /** Milliseconds before each chunk of a stream. */
  readonly paceMs: number
  /** Milliseconds before the first byte of the slow model. */
  readonly slowMs: number
}

/** The time for the caller to read what was sent: a reset discards what is still in its buffer. */
const BEFORE_RESET_MS = 20

/** Sends an answer as the model does: whole or streamed, late, or broken off in the middle. */
export async function sendAnswer(
  res: ServerResponse,
  { stream, model, rendering }: { stream: boolean; model: DemoModel; rendering: Rendering },
  { paceMs, slowMs }: Pace,
  left: AbortSignal,
): Promise<void> {
  if (model.slow) await sleep(slowMs, undefined, { signal: left })

  if (stream) {
    res.writeHead(200, { 'content-type': 'text/event-stream; charset=utf-8', 'cache-control': 'no-cache' })
    await writeFrames(res, rendering.opening(), paceMs, left)
    if (model.breaksOff !== undefined) return breakOff(res, model.breaksOff, left)
    await writeFrames(res, rendering.closing(), paceMs, left)
    res.end()
    return
  }

  const body = Buffer.from(JSON.stringify(rendering.body()))
  res.writeHead(200, { 'content-type': 'application/json', 'content-length': body.length })
  if (model.breaksOff === undefined) {
    res.end(body)
    return
  }
  res.write(body.subarray(0, body.length / 2))
  await breakOff(res, model.breaksOff, left)
}

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

async function breakOff(res: ServerResponse, how: 'silence' | 'reset', left: AbortSignal): Promise<void> {
  if (how === 'silence') {
    if (!left.aborted) await once(left, 'abort')
    return
  }
  await sleep(BEFORE_RESET_MS, undefined, { signal: left })
  res.socket?.resetAndDestroy()
}
