import { type CallLogEntry, itemOf, withLateCharge } from '../../core/call/index.ts'
import { NO_TAGS } from '../../core/catalog/index.ts'
import { type CallUsage, NOT_KNOWN } from '../../core/usage/index.ts'
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

/** Returns what the charge of a task adds to the usage of its hour. Its call was counted when it was created. */
export function usageOfTask(task: VideoTask): CallUsage {
  const { model, line, user = null, tags = NO_TAGS, usage, facts } = task
  const used = { outputTokens: usage.tokens ?? 0, seconds: usage.seconds ?? facts.seconds }
  return { ...NOT_KNOWN, model, line, user, tags, requests: 0, ...used }
}
