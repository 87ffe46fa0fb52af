/** How long the verdict of a probe is worth waiting for, in milliseconds. */
export const VERDICT_MS = 1000

/** An attempt that decides whether a circuit closes. */
export class Probe {
  readonly account: string
  readonly startedAt = performance.now()

  constructor(account: string) {
    this.account = account
  }
}

/**
 * Whether another probe may begin. One of another account blocks for as long as the circuit stays open at most.
 *
 * @param running the probe that runs; undefined if there is none.
 */
export function mayFollow(running: Probe | undefined, account: string, resetMs: number): boolean {
  if (!running) return true
  return running.account !== account && performance.now() - running.startedAt >= resetMs
}
