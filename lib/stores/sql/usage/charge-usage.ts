import { type CallUsage, NOT_KNOWN, shareOfCharge, type UsageShare } from '../../../core/usage/index.ts'

/** Returns the usage of a charge as its row keeps it, so that it can be taken away again. */
export function writeUsage(usage: CallUsage): string {
  const written: Record<string, unknown> = {}
  for (const name in usage) {
    const value = usage[name as keyof CallUsage]
    // A duration of 0 is counted; without a duration nothing is.
    if (value !== null && (value !== 0 || name === 'durationMs')) written[name] = value
  }
  return JSON.stringify(written)
}

/** The columns of a charge that usage needs. All are null where a join has found no charge. */
export interface CountedRow {
  readonly account: string | null
  readonly key: string | null
  readonly amount: bigint | null
  readonly at: bigint | null
  readonly cost: bigint | null
  /** What {@link writeUsage} has written; null: it is not counted yet. */
  readonly usage: string | null
}

/** Returns what a charge has added to usage; null if there is none, or it is not counted yet. */
export function shareOfRow({ account, key, amount, at, cost, usage }: CountedRow): UsageShare | null {
  if (account === null || usage === null) return null
  const written = JSON.parse(usage) as Partial<CallUsage>
  const known = { ...NOT_KNOWN, requests: 0, ...written }
  return shareOfCharge({ account, key, amount: amount ?? 0n, at: Number(at), cost, usage: known })
}
