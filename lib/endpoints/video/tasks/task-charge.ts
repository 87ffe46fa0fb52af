import type { CallLogEntry } from '../../../core/call/index.ts'
import { withLateCharge } from '../../../core/call/index.ts'
import { formatAmount } from '../../../core/catalog/index.ts'
import type { VideoTask } from './task.ts'

/** Returns how the charge of a task was computed, as JSON for the ledger. */
export function basisOf({ line, charge }: VideoTask): string | null {
  if (!charge) return null
  const items = charge.items.map((item) => ({ ...item, price: formatAmount(item.price) }))
  return JSON.stringify({ line, source: charge.source, items })
}

/** Adds the charge of a task to the log entry of its call; returns the entry unchanged if there is no charge. */
export function chargedEntry(entry: CallLogEntry, { charge, hold, usage, facts }: VideoTask): CallLogEntry {
  if (!charge) return entry
  const { seconds, tokens } = usage
  return withLateCharge(entry, {
    ...charge,
    reserved: hold,
    seconds: seconds ?? facts.seconds,
    tokens: tokens ?? 0,
  })
}
