import type { LineFigures, LineOutline } from 'express-model-gateway/route'
import { h } from './element.ts'
import { badge } from './parts/status.ts'

/** The status of a line in the process that answered, or, for operators, its figures in all workers. */
export interface Line extends LineOutline, Partial<Omit<LineFigures, keyof LineOutline>> {
  /** Where there are several. */
  readonly workers?: readonly {
    readonly worker: number
    readonly answered: boolean
    readonly circuit?: LineOutline['circuit']
  }[]
  /** Whether it was switched on or off; null = the config decides. */
  readonly switched?: boolean | null
}

const CIRCUITS = {
  closed: ['good', 'closed'],
  half_open: ['warn', 'half open'],
  open: ['bad', 'open'],
} as const

/** Returns a text if workers differ or do not answer; else null. */
export function workersNote({ circuit, workers = [] }: Line): string | null {
  const answered = workers.filter((one) => one.answered)
  const same = answered.filter((one) => one.circuit === circuit)
  const silent = workers.length - answered.length
  const notes = [
    same.length < answered.length && `in ${same.length} of ${answered.length} workers`,
    silent > 0 && `${silent} ${silent === 1 ? 'worker does' : 'workers do'} not answer`,
  ]
  return notes.filter((note) => note !== false).join(', ') || null
}

/** Returns the state of a line's circuit; closed is the good one. */
export function circuitBadge({ circuit, retry_after_ms: retryAfter }: Line): HTMLElement {
  const [tone, text] = CIRCUITS[circuit]
  const wait = typeof retryAfter !== 'number' ? '' : `, probe in ${Math.ceil(retryAfter / 1000)} s`
  return h('span', {}, badge(tone, `${text}${wait}`))
}
