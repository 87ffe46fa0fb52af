import { Buffer } from 'node:buffer'
import { BodyCollector } from '../../../core/bytes/index.ts'
import type { DataCollector } from '../../../routing/attempt/data-collector.ts'

/** A longer error body is read only up to this. */
export const MAX_ERROR_BODY_BYTES = 64 * 1024

const NO_BYTES = Buffer.alloc(0)

/** Returns what collects a body that comes in several chunks, the first of which may have come. */
export function collecting(
  begun: Buffer | BodyCollector | DataCollector | undefined,
  status: number | null,
): BodyCollector | DataCollector {
  if (begun !== undefined && !Buffer.isBuffer(begun)) return begun
  const collector = new BodyCollector(status === 200 ? undefined : MAX_ERROR_BODY_BYTES)
  if (begun) collector.push(begun)
  return collector
}

export function wholeOf(body: Buffer | BodyCollector | DataCollector | undefined): Buffer {
  if (body === undefined || Buffer.isBuffer(body)) return body ?? NO_BYTES
  return (body as BodyCollector).take()
}
