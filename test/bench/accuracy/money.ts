import type { CallLogEntry } from '../../../lib/middleware/call-log/index.ts'
import type { Books } from './books.ts'
import type { Send, Wanted } from './exchange.ts'
import type { BenchUpstream, ServedAttempt } from './upstream.ts'

/** Some calls, what the ledger has of them, and what the upstream counted. Amounts are nano-units. */
export interface Tally {
  calls: number
  ledger: bigint
  upstream: bigint
}

/** How the ledger compares with what the upstream served and what callers saw. */
export interface MoneyShare {
  /** Ended completed, and the upstream reported its counts. */
  readonly completed: Tally
  /** Ended completed, and the upstream reported no counts: the gateway estimated. */
  readonly estimated: Tally
  /** Streams that broke off behind their first output, whoever did it. */
  readonly interrupted: Tally
  /** The calls that break a promise, by its name. */
  readonly broken: Readonly<Record<Breach, readonly string[]>>
}

const BREACHES = [
  'differing from the upstream',
  'charged twice',
  'seen to its end, not charged',
  'seen to its end, never finished upstream',
  'refused, and charged',
  'charged to nobody',
] as const

/** A promise about money that did not hold. */
export type Breach = (typeof BREACHES)[number]

interface Told {
  readonly wanted: Wanted
  readonly send: Send
  readonly entry: CallLogEntry | undefined
  readonly attempt: ServedAttempt | undefined
  /** Charged less what was undone; undefined: never charged. */
  readonly charged: bigint | undefined
}

/** Compares three witnesses of each request: its caller, the lines that served it, and the ledger. */
export function shareOfMoney(
  wanted: readonly Wanted[],
  served: BenchUpstream['served'],
  books: Books,
): MoneyShare {
  const tally = (): Tally => ({ calls: 0, ledger: 0n, upstream: 0n })
  const share = { completed: tally(), estimated: tally(), interrupted: tally() }
  const broken = Object.fromEntries(BREACHES.map((name) => [name, []])) as unknown as Record<Breach, string[]>
  const known = new Set<string>()
  for (const each of wanted) {
    const told = toldOf(each, served.get(each.name) ?? [], books)
    for (const one of told) {
      if (one.entry) known.add(one.entry.id)
      judge(one, share, broken)
    }
    const paid = told.filter(({ charged = 0n }) => charged > 0n)
    if (paid.length > 1) broken['charged twice'].push(each.name)
  }
  for (const id of books.charges.keys()) if (!known.has(id)) broken['charged to nobody'].push(id)
  return { ...share, broken }
}

/** The requests that one was sent as, each with the attempt that its answer came from. */
function toldOf(wanted: Wanted, attempts: readonly ServedAttempt[], books: Books): Told[] {
  return wanted.sends.map((send, i) => {
    const next = wanted.sends[i + 1]?.sentAt ?? Number.POSITIVE_INFINITY
    const entry = books.callsByClientId.get(send.id)
    const id = entry?.id ?? send.requestId
    const charge = id === null ? undefined : books.charges.get(id)
    const charged = id === null || charge === undefined ? undefined : charge - (books.voids.get(id) ?? 0n)
    const during = attempts.filter(({ receivedAt }) => receivedAt >= send.sentAt && receivedAt < next)
    const attempt = answeredBy(send, entry, attempts) ?? during.at(-1)
    return { wanted, send, entry, attempt, charged }
  })
}

/**
 * The attempt that an answer came from. A line may still receive, and serve, an attempt that the gateway has given up, even
 * when its call is over: so not the last one counts, but the one whose answer the caller got; where it left before that, the
 * one on the line that the call log names.
 */
function answeredBy(
  { attemptId }: Send,
  entry: CallLogEntry | undefined,
  attempts: readonly ServedAttempt[],
): ServedAttempt | undefined {
  if (attemptId !== undefined) return attempts.find(({ id }) => id === attemptId)
  const last = entry?.routing?.attempts.at(-1)
  if (last?.outcome !== 'completed') return undefined
  return attempts.findLast(({ line, finishedAt }) => line === last.line && finishedAt !== null)
}

function judge(
  { wanted, send, entry, attempt, charged }: Told,
  share: Pick<MoneyShare, 'completed' | 'estimated' | 'interrupted'>,
  broken: Record<Breach, string[]>,
): void {
  const name = entry?.id ?? send.requestId ?? send.id
  const completed = send.sawEnd || (entry?.outcome === 'completed' && charged !== undefined)
  const finished = attempt && attempt.finishedAt !== null
  if (send.sawEnd && charged === undefined) broken['seen to its end, not charged'].push(name)
  if (completed && !finished) broken['seen to its end, never finished upstream'].push(name)
  if (send.status !== null && send.status >= 400 && (charged ?? 0n) > 0n)
    broken['refused, and charged'].push(name)
  if (completed && finished) {
    const reported = attempt.fault !== 'no usage'
    add(reported ? share.completed : share.estimated, charged ?? 0n, attempt.cost())
    if (reported && charged !== attempt.cost()) broken['differing from the upstream'].push(name)
  } else if (wanted.stream && attempt && attempt.produced() > 0) {
    add(share.interrupted, charged ?? 0n, attempt.cost())
  }
}

function add(tally: Tally, ledger: bigint, upstream: bigint): void {
  tally.calls++
  tally.ledger += ledger
  tally.upstream += upstream
}
