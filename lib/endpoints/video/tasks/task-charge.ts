import { type CallLogEntry, itemOf, withLateCharge } from '../../../core/call/index.ts'
import type { VideoTask } from './task.ts'

/** Returns how the charge of a task was computed, as JSON for the ledger. */
export function basisOf({ line, charge }: VideoTask): string | null {
  if (!charge) return null
  return JSON.stringify({ line, source: charge.source, items: charge.items.map(itemOf) })
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
