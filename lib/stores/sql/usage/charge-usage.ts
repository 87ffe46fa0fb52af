import { type CallUsage, NOT_KNOWN } from '../../../core/usage/index.ts'

/** Returns the usage of a charge as its row keeps it, so that it can be taken away again. */
export function writeUsage(usage: CallUsage): string {
  return JSON.stringify(usage, (name, value: unknown) =>
    // A duration of 0 is counted; without a duration nothing is.
    value === null || (value === 0 && name !== 'durationMs') ? undefined : value,
  )
}

/** Returns what {@link writeUsage} has written. */
export function readUsage(text: string): CallUsage {
  return { ...NOT_KNOWN, requests: 0, ...(JSON.parse(text) as Partial<CallUsage>) }
}
