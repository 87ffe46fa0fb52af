import type { CallLogEntry } from '../../../core/call/index.ts'
import { withLateCharge } from '../../../core/call/index.ts'
import { formatAmount } from '../../../core/catalog/index.ts'
import type { VideoTask } from './task.ts'

/** How the charge of a task came about, as JSON, to be kept with it. */
export function basisOf({ line, charge }: VideoTask): string | null {
  if (!charge) return null
  const items = charge.items.map((item) => ({ ...item, price: formatAmount(item.price) }))
  return JSON.stringify({ line, source: charge.source, items })
}

/** The log entry of the call that created a task, with what the task came to; as it is while that is not known. */
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
