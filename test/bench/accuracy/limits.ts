import type { Send, Wanted } from './exchange.ts'
import type { Member, Span } from './fleet.ts'
import type { LimitedSubject } from './setting.ts'
import type { BenchUpstream } from './upstream.ts'

/** What came of one limit. All are shares of what is configured. */
export interface LimitShare {
  readonly subject: LimitedSubject
  /** Windows in which more was wanted than allowed; of slots: the calls that had one. */
  readonly windows: number
  /** Admitted in them, on average; of slots: how much of the time they were surely in use. */
  readonly average: number
  /** Admitted in the fullest window; of slots: the most in use at a time. */
  readonly most: number
  /** The same of the one window, or of the moments, of the outage; null: the subject did not meet it. */
  readonly inOutage: number | null
}

/** What limits are judged by. Times are milliseconds since the epoch. */
export interface LimitEvidence {
  readonly wanted: readonly Wanted[]
  readonly served: BenchUpstream['served']
  /** When a process took Redis for away. */
  readonly localSpans: ReadonlyMap<Member, readonly Span[]>
  readonly load: Span
  /** From when Redis was killed until all had noticed that it is back; undefined: it was not. */
  readonly outage: Span | undefined
}

interface Admission {
  readonly at: number
  /** Until when its slot was surely held. */
  readonly until: number
  readonly cost: number
  /** Whether a process counted it by itself. */
  readonly local: boolean
}

interface Window extends Span {
  used: number
}

const WINDOW_MS = 60_000
/** An upstream may see the first call of a window so much later than the limiter did: its money was waited for. */
const MIXED_UP_MS = 1500

/** How much of a limit was let through. */
export function shareOfLimit(subject: LimitedSubject, evidence: LimitEvidence): LimitShare {
  const { admitted, refusedAt } = historyOf(subject, evidence)
  if (subject.kind === 'concurrency') return shareOfSlots(subject, admitted, evidence)
  const { outage, load } = evidence
  // Redis forgets everything when it is killed.
  const forgotAt = outage?.from ?? load.to
  const counted = admitted.filter(({ local }) => !local)
  const windows = [
    ...windowsOf(counted.filter(({ at }) => at < forgotAt)).map(({ from, to, used }) => {
      return { from, to: Math.min(to, forgotAt), used }
    }),
    ...windowsOf(counted.filter(({ at }) => at >= forgotAt)),
  ]
  const full = windows.filter(({ from, to }) => refusedAt.some((at) => at >= from && at < to))
  const first = admitted[0]?.at ?? 0
  const ofOutage = admitted.filter(({ at }) => at < first + WINDOW_MS)
  return {
    subject,
    windows: full.length,
    average: sum(full.map(({ used }) => used)) / (full.length * subject.most),
    most: Math.max(0, ...windows.map(({ used }) => used)) / subject.most,
    inOutage: outage && subject.inOutage ? sum(ofOutage.map(({ cost }) => cost)) / subject.most : null,
  }
}

function historyOf({ kind, keys }: LimitedSubject, evidence: LimitEvidence) {
  const { wanted, served, localSpans } = evidence
  const admitted: Admission[] = []
  const refusedAt: number[] = []
  for (const { name, secret, sends, inputTokens } of wanted) {
    const [send] = sends
    if (!send || !keys.includes(secret)) continue
    const refused = send.code === 'rate_limited' || send.code === 'concurrency_limited'
    if (refused) refusedAt.push(send.endedAt)
    const attempts = served.get(name) ?? []
    // One that the lines were not asked for took its share all the same, if it came as far as the limits.
    const at = attempts[0]?.receivedAt ?? (send.limited && !refused ? send.endedAt : undefined)
    if (at === undefined) continue
    const last = attempts.at(-1)
    const until = Math.min(send.leftAt ?? send.endedAt, last?.finishedAt ?? last?.receivedAt ?? at)
    const cost = kind === 'tpm' ? inputTokens : 1
    const local = touches(localSpans.get(send.member), send, at)
    admitted.push({ at, until: Math.max(at, until), cost, local })
  }
  return { admitted: admitted.sort((one, other) => one.at - other.at), refusedAt }
}

function touches(spans: readonly Span[] = [], { sentAt }: Send, at: number): boolean {
  return spans.some(({ from, to }) => from <= at && to >= sentAt)
}

/** A window begins with the first that is admitted when there is none. */
function windowsOf(admitted: readonly Admission[]): Window[] {
  const windows: Window[] = []
  for (const { at, cost } of admitted) {
    const last = windows.at(-1)
    if (last && at < last.to - MIXED_UP_MS) last.used += cost
    else windows.push({ from: at, to: at + WINDOW_MS, used: cost })
  }
  return windows
}

function shareOfSlots(
  subject: LimitedSubject,
  admitted: readonly Admission[],
  { load, outage }: LimitEvidence,
): LimitShare {
  const { most } = subject
  // What processes admitted by themselves runs on for a while when Redis is back, and is known there only then.
  const counted = admitted.filter(({ local }) => !local)
  const before = counted.filter(({ at }) => at < (outage?.from ?? load.to))
  const behind = outage ? counted.filter(({ at }) => at > outage.to) : []
  const held = sum(admitted.map(({ at, until }) => until - at))
  const met = outage ? admitted.filter(({ at, until }) => until >= outage.from && at <= outage.to) : []
  return {
    subject,
    windows: admitted.length,
    average: held / (most * (load.to - load.from)),
    most: Math.max(mostAtOnce(before), mostAtOnce(behind)) / most,
    inOutage: outage ? mostAtOnce(met) / most : null,
  }
}

function mostAtOnce(held: readonly Admission[]): number {
  const moves = held.flatMap(({ at, until }) => [
    { at, by: 1 },
    { at: until, by: -1 },
  ])
  // One that ends in the same millisecond has made room.
  moves.sort((one, other) => one.at - other.at || one.by - other.by)
  let running = 0
  let most = 0
  for (const { by } of moves) {
    running += by
    most = Math.max(most, running)
  }
  return most
}

function sum(values: readonly number[]): number {
  return values.reduce((total, value) => total + value, 0)
}
