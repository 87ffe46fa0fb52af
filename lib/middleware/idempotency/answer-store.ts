/**
 * Keeps the answers of calls with an Idempotency-Key apart from their entries in the call log, in parts. An answer is written
 * before the entry that points at it.
 */
export interface AnswerStore {
  /** The size of a part in bytes: as much as may be written at a time without a delay for anything else. */
  readonly partBytes: number
  /** Writes one part, by itself. Repeating it changes nothing. */
  write(requestId: string, part: number, bytes: Uint8Array): Promise<void>
  /** Deletes an answer that no entry points at. */
  drop(requestId: string): Promise<void>
}
