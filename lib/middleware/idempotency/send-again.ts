import type { ServerResponse } from 'node:http'
import type { IdempotencyRecord } from '../../core/idempotency/index.ts'
import { answerRecordIn, sendRecorded } from '../../core/repetition/index.ts'

/**
 * Answers a repetition as the first request was answered.
 *
 * @returns whether it did: not if the first is still running, had other content, or its answer was not kept or cannot be read.
 */
export function sendAgain(record: IdempotencyRecord, fingerprint: string, res: ServerResponse): boolean {
  const { state, answer, owner } = record
  if (state !== 'completed' || record.fingerprint !== fingerprint || answer === undefined) return false
  const kept = answerRecordIn(answer)
  if (!kept) return false
  sendRecorded(kept, res, { 'idempotent-replayed': 'true', 'x-original-request-id': owner })
  return true
}
