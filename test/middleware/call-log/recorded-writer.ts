import type { TestContext } from 'node:test'
import { setImmediate as turn } from 'node:timers/promises'
import type { CallLogEntry } from '../../../lib/core/call/index.ts'
import { CallLogWriter, type CallLogWriterOptions } from '../../../lib/middleware/call-log/index.ts'
import { entryAt } from '../../contracts/call-store.ts'
import { RecordingStore, recordingLogger } from './recording-store.ts'

/** The time at which tests begin. */
export const NOW = Date.parse('2026-01-31T12:00:00Z')

/** Writers on a store and a logger that note what they get, and on the clock of the test. */
export interface RecordedWriters {
  readonly store: RecordingStore
  readonly logger: ReturnType<typeof recordingLogger>
  writerOf(options?: Partial<CallLogWriterOptions>): CallLogWriter
}

export function recordedWriters(t: TestContext): RecordedWriters {
  t.mock.timers.enable({ apis: ['setTimeout', 'Date'], now: NOW })
  const store = new RecordingStore()
  const logger = recordingLogger()
  return { store, logger, writerOf: (options) => new CallLogWriter({ store, logger, ...options }) }
}

export function entries(count: number): CallLogEntry[] {
  return Array.from({ length: count }, (_, i) => entryAt(NOW + i))
}

/** Lets time pass, and what is due be done. */
export async function pass(t: TestContext, ms: number): Promise<void> {
  t.mock.timers.tick(ms)
  for (let i = 0; i < 5; i++) await turn()
}
