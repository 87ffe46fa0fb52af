/**
 * Calls `run` when `ms` have passed and everything that had arrived by then was read: an answer does not count as late if
 * only this process was delayed.
 *
 * @param keepsAlive whether the timer keeps the process alive.
 * @returns a function that cancels the timer.
 */
export function timeLimit(ms: number, run: () => void, keepsAlive = false): () => void {
  let read: NodeJS.Immediate | undefined
  const timer = setTimeout(() => {
    read = setImmediate(run)
  }, ms)
  if (!keepsAlive) timer.unref()
  return () => {
    clearTimeout(timer)
    clearImmediate(read)
  }
}
