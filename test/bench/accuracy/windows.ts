import type { Span } from './fleet.ts'

/** One that a limit let through. Times are milliseconds since the epoch. */
export interface Admission {
  readonly sentAt: number
  /** When somebody first saw that it was let through. */
  readonly at: number
  /** Until when its slot was surely held. */
  readonly until: number
  readonly cost: number
  /** Whether a process counted it by itself. */
  readonly local: boolean
  /** The span in which its window ends, as its answer reports; undefined: the answer does not report it. */
  readonly windowEnds: Span | undefined
}

/** A window of a counter, and what was let through in it. */
export interface Window extends Span {
  readonly used: number
  /** The part of it that another counter let through: a process by itself, or a replica that did not have this window. */
  readonly elsewhere: number
}

interface Told {
  /** The window ends between these. */
  from: number
  to: number
  used: number
  elsewhere: number
}

const WINDOW_MS = 60_000

/**
 * The windows that admissions were counted in. An upstream may see the first call of a window seconds later than the limiter
 * did, so nobody outside knows when a window began. But each answer reports when its window ends, give or take how long
 * the answer took. Windows of one counter end at least a minute apart, so that says which window a call was counted in.
 *
 * An admission that does not fit was counted by another counter. It is added to the window open then: an excess shows.
 */
export function windowsOf(admitted: readonly Admission[], limit: number): Window[] {
  const windows: Told[] = []
  const told = admitted.flatMap(({ windowEnds, cost }) => (windowEnds ? [{ ...windowEnds, cost }] : []))
  for (const { from, to, cost } of told.sort((one, other) => one.to - other.to)) {
    const last = windows.at(-1)
    if (last && from <= last.to) {
      last.from = Math.max(last.from, from)
      last.used += cost
    } else if (last && to - last.from < WINDOW_MS) {
      last.used += cost
      last.elsewhere += cost
    } else windows.push({ from, to, used: cost, elsewhere: 0 })
  }
  // The calls whose callers left before the head, and who may have been counted any time until they were seen.
  for (const silent of admitted) if (!silent.windowEnds) place(silent, windows, limit)
  return windows.map((window) => ({ ...window, from: window.from - WINDOW_MS }))
}

/** Around the border of two windows a call may have been counted in either, so it is in the one that has room for it. */
function place({ sentAt, at, cost }: Admission, windows: Told[], limit: number): void {
  const open = windows.filter(({ from, to }) => at >= from - WINDOW_MS && sentAt < to)
  const surelyIn = open.find(({ from, to }) => sentAt >= to - WINDOW_MS && at < from)
  const roomy = surelyIn ?? open.find(({ used }) => used + cost <= limit)
  if (roomy) roomy.used += cost
  else windows.push({ from: sentAt + WINDOW_MS, to: at + WINDOW_MS, used: cost, elsewhere: 0 })
}

/** The most in any minute in which a process counted by itself, whoever counted it; null: none did. */
export function mostWithLocal(admitted: readonly Admission[]): number | null {
  let most: number | null = null
  for (const { at: from } of admitted) {
    const minute = admitted.filter(({ at }) => at >= from && at < from + WINDOW_MS)
    if (!minute.some(({ local }) => local)) continue
    most = Math.max(
      most ?? 0,
      minute.reduce((used, { cost }) => used + cost, 0),
    )
  }
  return most
}
