import type { LimitShare } from './limits.ts'
import type { Breach, MoneyShare, Tally } from './money.ts'

/** One line of the table. */
export interface Figure {
  readonly name: string
  readonly value: number
  /** The base of the figure. */
  readonly of: string
  /** The promise; null: there is none, the figure is only reported. */
  readonly promise: string | null
  readonly kept: boolean
}

/** The figures by which a run is judged, apart from its limits and its money. */
export interface Remains {
  readonly slots: number
  readonly leasesLeft: number
  readonly leasesLost: number
  readonly claims: number
  readonly violations: number
  /** Accounts that spent more than they have. */
  readonly overspent: number
  /** Errors that the processes logged as unforeseen. */
  readonly unforeseen: number
  /** Processes that did not end in good order. */
  readonly badExits: number
  /** Calls without an answer in a run in which no process is killed; null: some are. */
  readonly unanswered: number | null
}

/** The promised figures, in the order in which they are reported. */
export function figuresOf(
  limits: readonly LimitShare[],
  money: MoneyShare,
  remains: Remains,
  processes: number,
): Figure[] {
  return [
    ...limitFigures(limits),
    ...failoverFigures(limits, processes),
    ...moneyFigures(money),
    none('slots leaked', remains.slots, 'in Redis, when nobody calls'),
    none('leases lost', remains.leasesLost, 'of processes that lived'),
    none('leases left', remains.leasesLeft, 'when all have ended'),
    none('claims leaked', remains.claims, 'when all have ended'),
    none('violations', remains.violations, "of the ledger's own check"),
    none('accounts overspent', remains.overspent, 'prepaid'),
    none('unforeseen errors', remains.unforeseen, 'in the logs'),
    none('bad exits', remains.badExits, 'after SIGTERM'),
    ...(remains.unanswered === null
      ? []
      : [none('calls without an answer', remains.unanswered, 'connections refused or reset')]),
  ]
}

const KINDS = { rpm: 'requests', tpm: 'tokens', concurrency: 'slots' } as const

function limitFigures(limits: readonly LimitShare[]): Figure[] {
  return (['rpm', 'tpm', 'concurrency'] as const).flatMap((kind) => {
    const shares = limits.filter(({ subject, windows }) => subject.kind === kind && windows > 0)
    const windows = shares.reduce((sum, share) => sum + share.windows, 0)
    const average = shares.reduce((sum, share) => sum + share.average * share.windows, 0) / windows
    const most = Math.max(
      0,
      ...limits.filter(({ subject }) => subject.kind === kind).map((share) => share.most),
    )
    const [one, of] =
      kind === 'concurrency'
        ? ['most at a time', `${windows} calls`]
        : ['fullest window', `${windows} windows`]
    return [
      told(`${KINDS[kind]} admitted ÷ limit, average`, average, of),
      atMost(`${KINDS[kind]} admitted ÷ limit, ${one}`, most, of, 1),
    ]
  })
}

/** A replica that lacks all writes of a window admits the whole limit once more, and so does each process by itself. */
function failoverFigures(limits: readonly LimitShare[], processes: number): Figure[] {
  return (['rpm', 'tpm', 'concurrency'] as const).flatMap((kind) => {
    const shares = limits.filter(({ subject }) => subject.kind === kind)
    const figure = (which: string, met: readonly (number | null)[], most: number) => {
      const known = met.filter((share) => share !== null)
      if (known.length === 0) return []
      const name = `${KINDS[kind]} admitted ÷ limit, ${which}`
      return atMost(name, Math.max(...known), `${known.length} limits`, most)
    }
    return [
      figure(
        'a replica of Redis took over',
        shares.map((share) => share.mostInFailover),
        2,
      ),
      figure(
        'with what processes counted by themselves',
        shares.map((share) => share.mostWithLocal),
        2 + processes,
      ),
    ].flat()
  })
}

function moneyFigures({ completed, estimated, interrupted, broken }: MoneyShare): Figure[] {
  const ratio = ({ ledger, upstream }: Tally) => Number(ledger) / Number(upstream)
  const apart = (name: string, tally: Tally) =>
    tally.calls === 0 ? [] : told(`ledger ÷ upstream, ${name}`, ratio(tally), `${tally.calls} calls`)
  return [
    {
      name: 'ledger ÷ upstream, completed',
      value: ratio(completed),
      of: `${completed.calls} calls`,
      promise: '1',
      kept: completed.ledger === completed.upstream && completed.calls > 0,
    },
    ...[apart('completed, usage not told', estimated), apart('interrupted', interrupted)].flat(),
    ...Object.entries(broken).map(([name, concerned]) =>
      none(WORDING[name as Breach], concerned.length, concerned.slice(0, 3).join(' ') || 'requests'),
    ),
  ]
}

const WORDING: Readonly<Record<Breach, string>> = {
  'differing from the upstream': 'charges that differ from the upstream',
  'charged twice': 'requests charged twice',
  'seen to its end, not charged': 'charges missing for answers seen to their end',
  'seen to its end, never finished upstream': 'answers ended that the upstream did not end',
  'refused, and charged': 'requests answered with an error, and charged',
  'charged to nobody': 'charges for requests that nobody sent',
}

function told(name: string, value: number, of: string): Figure {
  return { name, value, of, promise: null, kept: true }
}

function none(name: string, value: number, of: string): Figure {
  return { name, value, of, promise: '0', kept: value === 0 }
}

function atMost(name: string, value: number, of: string, most: number): Figure {
  return { name, value, of, promise: `≤ ${most}`, kept: value <= most }
}

/** A markdown table. */
export function figureTable(figures: readonly Figure[]): string {
  const rows = figures.map(({ name, value, of, promise, kept }) => {
    const shown = Number.isInteger(value) ? `${value}` : value.toFixed(4)
    return `| ${name} | ${shown} | ${promise ?? '–'} | ${kept ? '' : '**broken** '}${of} |`
  })
  return ['| figure | measured | promised | of |', '| --- | --- | --- | --- |', ...rows].join('\n')
}
