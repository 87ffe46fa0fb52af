import { isText, parseJsonObject } from '../../core/json/index.ts'
import type { FailureCounts } from './circuit-link.ts'

/*
 * The values of notes. Processes of other versions leave notes too, which may look otherwise: what this version cannot read
 * is undefined, and only its note does not count.
 */

/** What processes tell of a circuit that opens or closes. */
export interface Told {
  readonly isOpen: boolean
  readonly holder: string | null
  readonly othersProbe: boolean
  readonly failedForMs: number
}

/** @param turn tells the value from all that this process, and others, have told before. */
export function toldValue(told: Told, turn: { readonly by: string; readonly turns: number }): string {
  return JSON.stringify({ ...told, ...turn })
}

export function readTold(value: string): Told | undefined {
  const { isOpen, holder, othersProbe, failedForMs } = parseJsonObject(value) ?? {}
  if (typeof isOpen !== 'boolean' || typeof othersProbe !== 'boolean') return undefined
  if (!(holder === null || typeof holder === 'string') || !isAmount(failedForMs)) return undefined
  return { isOpen, holder, othersProbe, failedForMs }
}

/** @param counts undefined takes the note away. */
export function countsValue(counts: FailureCounts | undefined): string {
  return counts ? JSON.stringify(counts) : ''
}

export function readCounts(value: string): FailureCounts | undefined {
  const { all, failures, account } = parseJsonObject(value) ?? {}
  if (!isAmount(all) || !isAmount(failures) || failures > all) return undefined
  return account === null || typeof account === 'string' ? { all, failures, account } : undefined
}

/** A rest: its length if the upstream did not say one, else 0; the process that began it, and its number there. */
export interface ToldRest {
  readonly unsaidMs: number
  readonly by: string
  readonly rest: number
}

export function restValue({ unsaidMs, by, rest }: ToldRest): string {
  return `${unsaidMs} ${by} ${rest}`
}

export function readRest(value: string): Omit<ToldRest, 'rest'> | undefined {
  const [unsaid, by] = value.split(' ')
  const unsaidMs = unsaid ? Number(unsaid) : undefined
  return isAmount(unsaidMs) && isText(by) ? { unsaidMs, by } : undefined
}

function isAmount(value: unknown): value is number {
  return typeof value === 'number' && Number.isFinite(value) && value >= 0
}
