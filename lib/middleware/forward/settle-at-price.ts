import type { Call, CallOutcome, ServedBy } from '../../core/call/index.ts'

const NOTHING_USED = {
  inputTokens: 0,
  cachedInputTokens: 0,
  cacheWriteTokens: 0,
  outputTokens: 0,
  source: 'measured',
} as const

/**
 * Charges a success durably, with the first minute.
 *
 * @throws {GatewayError} if that does not succeed in time.
 */
export async function settleAtPrice(call: Call, servedBy: ServedBy, outcome: CallOutcome): Promise<void> {
  call.usage = servedBy.price.perMinute > 0n ? { ...NOTHING_USED, minutes: 1 } : NOTHING_USED
  call.servedBy = servedBy
  // The end of the call is known only later, so its log entry is not written with its charge.
  if (call.entryBy === 'ledger') call.entryBy = 'writer'
  await call.settle({ outcome, unsent: null })
  call.prove()
}
