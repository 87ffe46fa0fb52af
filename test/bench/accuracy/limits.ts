import type { Send, Wanted } from './exchange.ts'
import type { Member, Span } from './fleet.ts'
import type { LimitedSubject } from './setting.ts'
import type { BenchUpstream } from './upstream.ts'
import { type Admission, mostWithLocal, type Window, windowsOf } from './windows.ts'

/** The result of one limit. All are shares of what is configured. */
export interface LimitShare {
  readonly subject: LimitedSubject
  /** Windows in which more was wanted than allowed; of slots: the calls that had one. */
  readonly windows: number
  /** Admitted in them, on average; of slots: how much of the time they were surely in use. */
  readonly average: number
  /** Admitted in the fullest window; of slots: the most in use at a time. Without what follows. */
  readonly most: number
  /**
   * The same of windows in which a replica of Redis took over: Redis confirms a write before a replica has it, so the replica
   * may lack the last ones. Null: there was none; of slots always.
   */
  readonly mostInFailover: number | null
  /** The same with all that processes counted by themselves while they took Redis for away; null: they did not. */
  readonly mostWithLocal: number | null
  /** A note for each window that admitted more than the limit: how much, and which processes took Redis for away meanwhile. */
  readonly exceeded: readonly string[]
}

/** The evidence by which limits are judged. Times are milliseconds since the epoch. */
export interface LimitEvidence {
  readonly wanted: readonly Wanted[]
  readonly served: BenchUpstream['served']
  /** When a process took Redis for away. */
  readonly localSpans: ReadonlyMap<Member, readonly Span[]>
  readonly load: Span
  /** From when Redis was killed until all had noticed that it is back; undefined: it was not. */
  readonly outage: Span | undefined
}

/** How much of a limit was let through. */
export function shareOfLimit(subject: LimitedSubject, evidence: LimitEvidence): LimitShare {
  const { admitted, refusedAt } = historyOf(subject, evidence)
  if (subject.kind === 'concurrency') return shareOfSlots(subject, admitted, evidence)
  const { outage } = evidence
  const windows = windowsOf(
    admitted.filter(({ local }) => !local),
    subject.most,
  )
  const metFailover = ({ from, to }: Span) => outage !== undefined && from <= outage.to && to >= outage.from
  const inFailover = windows.filter(metFailover)
  const calm = windows.filter((window) => !metFailover(window))
  const full = windows.filter(({ from, to }) => refusedAt.some((at) => at >= from && at < to))
  const most = (of: readonly { readonly used: number }[]) =>
    Math.max(0, ...of.map(({ used }) => used)) / subject.most
  const withLocal = mostWithLocal(admitted)
  return {
    subject,
    windows: full.length,
    average: sum(full.map(({ used }) => used)) / (full.length * subject.most),
    most: most(calm),
    mostInFailover: inFailover.length > 0 ? most(inFailover) : null,
    mostWithLocal: withLocal === null ? null : withLocal / subject.most,
    exceeded: windows
      .filter(({ used }) => used > subject.most)
      .map((window) => exceededNote(subject, window, evidence)),
  }
}

function exceededNote(
  { name, most }: LimitedSubject,
  { from, to, used, elsewhere }: Window,
  { localSpans, load }: LimitEvidence,
): string {
  const away = [...localSpans].flatMap(([member, spans]) =>
    spans.some((span) => span.from <= to && span.to >= from) ? [member.name] : [],
  )
  const seconds = (at: number) => `${((at - load.from) / 1000).toFixed(1)} s`
  const whose = away.length > 0 ? `${away.join(', ')} took Redis for away` : 'no process took Redis for away'
  return `${name} admitted ${used} of ${most}, of which another counter ${elsewhere}, from ${seconds(from)} to ${seconds(to)}; meanwhile ${whose}`
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
    const { sentAt, windowEnds } = send
    admitted.push({ sentAt, at, until: Math.max(at, until), cost, local, windowEnds })
  }
  return { admitted: admitted.sort((one, other) => one.at - other.at), refusedAt }
}

function touches(spans: readonly Span[] = [], { sentAt }: Send, at: number): boolean {
  return spans.some(({ from, to }) => from <= at && to >= sentAt)
}

function shareOfSlots(
  subject: LimitedSubject,
  admitted: readonly Admission[],
  { load, outage }: LimitEvidence,
): LimitShare {
  const { most } = subject
  // Calls that processes admitted by themselves run on for a while when Redis is back, and are known there only then.
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
    mostInFailover: null,
    mostWithLocal: outage ? mostAtOnce(met) / most : null,
    exceeded: [],
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
