import type { LineFigures } from 'express-model-gateway/route'
import type { Report } from './worker-messages.ts'

/** What is told of a line for one worker. */
type OfOneWorker =
  | ({ readonly worker: number; readonly pid: number; readonly answered: true } & Pick<
      LineFigures,
      | 'circuit'
      | 'retry_after_ms'
      | 'rest_ms'
      | 'in_flight'
      | 'first_byte_ms'
      | 'tokens_per_second'
      | 'recent_attempts'
      | 'recent_failures'
      | 'error_share'
    >)
  | { readonly worker: number; readonly pid: number; readonly answered: false }

/** A line as it does in all workers that have answered, and in each. */
export interface LineOfAll extends LineFigures {
  readonly workers: readonly OfOneWorker[]
}

const WORST_FIRST = ['open', 'half_open', 'closed'] as const

/**
 * The lines of the process that is asked, with the figures of all workers. Circuit and times to wait are those of the
 * worker where it is worst; what is counted is summed; what is averaged is weighed by the attempts of the last minute.
 *
 * @param own the lines as the process that is asked knows them: another one's config may be a moment older or newer.
 */
export function linesOfAll(
  own: readonly LineFigures[],
  reports: readonly Report<'lines'>[],
): readonly LineOfAll[] {
  const tables = reports.map(({ worker, pid, figures }) => ({
    worker,
    pid,
    lines: figures && new Map(figures.map((line) => [line.id, line])),
  }))
  return own.map((line) => {
    const workers = tables.flatMap(({ worker, pid, lines }): OfOneWorker[] => {
      if (lines === null) return [{ worker, pid, answered: false }]
      const figures = lines.get(line.id)
      return figures ? [{ worker, pid, answered: true, ...ofOne(figures) }] : []
    })
    const told = tables.flatMap(({ lines }) => lines?.get(line.id) ?? [])
    return { ...line, ...merged(told.length > 0 ? told : [line]), workers }
  })
}

function ofOne(line: LineFigures) {
  const { circuit, retry_after_ms, rest_ms, in_flight, first_byte_ms, tokens_per_second } = line
  const { recent_attempts, recent_failures, error_share } = line
  return {
    circuit,
    retry_after_ms,
    rest_ms,
    in_flight,
    first_byte_ms,
    tokens_per_second,
    recent_attempts,
    recent_failures,
    error_share,
  }
}

function merged(told: readonly LineFigures[]) {
  const sum = (of: (line: LineFigures) => number): number => told.reduce((all, line) => all + of(line), 0)
  const most = (of: (line: LineFigures) => number): number => Math.max(...told.map(of))
  const attempts = sum(({ recent_attempts }) => recent_attempts)
  const failures = sum(({ recent_failures }) => recent_failures)
  const waits = told.some(({ retry_after_ms }) => retry_after_ms !== null)
  return {
    circuit: WORST_FIRST.find((state) => told.some(({ circuit }) => circuit === state)) ?? 'closed',
    retry_after_ms: waits ? most(({ retry_after_ms }) => retry_after_ms ?? 0) : null,
    rest_ms: most(({ rest_ms }) => rest_ms),
    in_flight: sum(({ in_flight }) => in_flight),
    first_byte_ms: average(told, ({ first_byte_ms }) => first_byte_ms),
    tokens_per_second: average(told, ({ tokens_per_second }) => tokens_per_second),
    recent_attempts: attempts,
    recent_failures: failures,
    error_share: attempts === 0 ? null : Math.round((failures / attempts) * 1000) / 1000,
  }
}

/** Of those that have measured it, by their attempts of late; where none had any, each counts the same. */
function average(told: readonly LineFigures[], of: (line: LineFigures) => number | null): number | null {
  const measured = told.flatMap((line) => {
    const value = of(line)
    return value === null ? [] : [{ value, attempts: line.recent_attempts }]
  })
  if (measured.length === 0) return null
  const idle = measured.every(({ attempts }) => attempts === 0)
  const weight = ({ attempts }: { attempts: number }): number => (idle ? 1 : attempts)
  const total = measured.reduce((all, each) => all + weight(each), 0)
  return Math.round((measured.reduce((all, each) => all + each.value * weight(each), 0) / total) * 10) / 10
}
