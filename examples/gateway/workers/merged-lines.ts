import { joinAvailability, type LineFigures } from 'express-model-gateway/route'
import type { Report } from './messages.ts'

type WorkerLine =
  | ({ readonly worker: number; readonly pid: number; readonly answered: true } & ReturnType<
      typeof workerFigures
    >)
  | { readonly worker: number; readonly pid: number; readonly answered: false }

/** The figures of a line in all workers that have answered, together and for each. */
export interface MergedLine extends LineFigures {
  readonly workers: readonly WorkerLine[]
}

const WORST_FIRST = ['open', 'half_open', 'closed'] as const

/**
 * Merges the figures of all workers. Circuit and waits are those of the worst worker, counts are summed, and averages are
 * weighted by the attempts of the last minute.
 *
 * @param own the lines of this process; the config of another process can be older or newer for a moment.
 */
export function mergeWorkerLines(
  own: readonly LineFigures[],
  reports: readonly Report<'lines'>[],
): readonly MergedLine[] {
  const tables = reports.map(({ worker, pid, figures }) => ({
    worker,
    pid,
    lines: figures && new Map(figures.map((line) => [line.id, line])),
  }))
  return own.map((line) => {
    const workers = tables.flatMap(({ worker, pid, lines }): WorkerLine[] => {
      if (lines === null) return [{ worker, pid, answered: false }]
      const figures = lines.get(line.id)
      return figures ? [{ worker, pid, answered: true, ...workerFigures(figures) }] : []
    })
    const reported = tables.flatMap(({ lines }) => lines?.get(line.id) ?? [])
    return { ...line, ...mergeFigures(reported.length > 0 ? reported : [line]), workers }
  })
}

/** Leaves out what is the same in all workers. */
function workerFigures(line: LineFigures) {
  const { id, provider, protocol, region, enabled, priority, weight, ...figures } = line
  return figures
}

function mergeFigures(lines: readonly LineFigures[]) {
  const sum = (of: (line: LineFigures) => number): number => lines.reduce((all, line) => all + of(line), 0)
  const most = (of: (line: LineFigures) => number): number => Math.max(...lines.map(of))
  const attempts = sum(({ recent_attempts }) => recent_attempts)
  const failures = sum(({ recent_failures }) => recent_failures)
  const waits = lines.some(({ retry_after_ms }) => retry_after_ms !== null)
  return {
    availability: joinAvailability(lines.map(({ availability }) => availability)),
    circuit: WORST_FIRST.find((state) => lines.some(({ circuit }) => circuit === state)) ?? 'closed',
    retry_after_ms: waits ? most(({ retry_after_ms }) => retry_after_ms ?? 0) : null,
    rest_ms: most(({ rest_ms }) => rest_ms),
    in_flight: sum(({ in_flight }) => in_flight),
    first_byte_ms: average(lines, ({ first_byte_ms }) => first_byte_ms),
    tokens_per_second: average(lines, ({ tokens_per_second }) => tokens_per_second),
    recent_attempts: attempts,
    recent_failures: failures,
    error_share: attempts === 0 ? null : Math.round((failures / attempts) * 1000) / 1000,
    rests: longestRests(lines),
    circuits: worstCircuits(lines),
  }
}

/** Returns the rest of each model in the worker where it is longest. */
function longestRests(lines: readonly LineFigures[]): LineFigures['rests'] {
  const all = lines.flatMap(({ rests }) => rests).sort((one, other) => other.rest_ms - one.rest_ms)
  return [...Map.groupBy(all, ({ model }) => model).values()].flatMap(([longest]) => longest ?? [])
}

/** Returns each circuit as it is in the worker where it is worst; one that is open for all is worse than for one account. */
function worstCircuits(lines: readonly LineFigures[]): LineFigures['circuits'] {
  const rank = ({ state, account }: LineFigures['circuits'][number]): number =>
    2 * WORST_FIRST.indexOf(state) + (account === null ? 0 : 1)
  const all = lines.flatMap(({ circuits }) => circuits).sort((one, other) => rank(one) - rank(other))
  const groups = Map.groupBy(all, ({ scope, model }) => `${scope} ${model ?? ''}`)
  return [...groups.values()].flatMap(([worst]) => worst ?? [])
}

/** Averages the workers that have a value, weighted by their recent attempts; without any attempts, all count the same. */
function average(lines: readonly LineFigures[], of: (line: LineFigures) => number | null): number | null {
  const measured = lines.flatMap((line) => {
    const value = of(line)
    return value === null ? [] : [{ value, attempts: line.recent_attempts }]
  })
  if (measured.length === 0) return null
  const idle = measured.every(({ attempts }) => attempts === 0)
  const weight = ({ attempts }: { attempts: number }): number => (idle ? 1 : attempts)
  const total = measured.reduce((all, each) => all + weight(each), 0)
  return Math.round((measured.reduce((all, each) => all + each.value * weight(each), 0) / total) * 10) / 10
}
