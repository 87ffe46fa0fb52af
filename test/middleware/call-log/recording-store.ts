import type { Logger } from '../../../lib/core/call/index.ts'
import { type CallLogEntry, MemoryCallStore } from '../../../lib/middleware/call-log/index.ts'

/** A memory store that notes the batches it is given, and fails or hangs while a test sets `failing` or `hanging`. */
export class RecordingStore extends MemoryCallStore {
  readonly batches: string[][] = []
  failing = false
  hanging = false

  override async append(entries: readonly CallLogEntry[]): Promise<void> {
    this.batches.push(entries.map(({ id }) => id))
    if (this.hanging) return new Promise(() => {})
    if (this.failing) throw new Error('the disk is gone')
    return super.append(entries)
  }
}

/** A logger that keeps its lines. */
export function recordingLogger(): Logger & { lines: { level: string; fields: object; message: string }[] } {
  const lines: { level: string; fields: object; message: string }[] = []
  const note = (level: string) => (fields: object, message: string) =>
    void lines.push({ level, fields, message })
  return { lines, info: note('info'), warn: note('warn'), error: note('error') }
}
