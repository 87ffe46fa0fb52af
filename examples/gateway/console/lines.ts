import type { LineAnswer } from 'express-model-gateway/admin'
import type { LineOutline } from 'express-model-gateway/route'
import { h } from './element.ts'
import { badge } from './parts/status.ts'

/** The part of a line that callers see, and for operators its figures. */
export type Line = LineOutline & Partial<LineAnswer>

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
