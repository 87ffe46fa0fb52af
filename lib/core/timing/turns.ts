import { AsyncResource } from 'node:async_hooks'

/** A larger body is read in a turn of its own. This many bytes take some milliseconds. */
export const MAX_BYTES_AT_ONCE = 256 * 1024

/** Work that takes longer is followed by as long a pause. */
const SHORT_MS = 4

/** The work that waits, by owner, the one whose turn is next first. */
const waiting = new Map<string | undefined, (() => void)[]>()
let isBusy = false

/**
 * Runs work that holds the event loop for long, such as parsing a large body: one piece at a time, each owner in turn, and
 * with a pause after each piece in which everybody else goes on. So large bodies delay others by one piece, however many
 * there are.
 *
 * @param owner the account that the work is for.
 * @param work may run before this returns. It runs in the asynchronous context of its caller, not in that of the turn before.
 * @example
 * takeTurn(call.principal?.accountId, () => receive(parse(bytes)))
 */
export function takeTurn(owner: string | undefined, work: () => void): void {
  const context = new AsyncResource('turn')
  const inContext = (): void => context.runInAsyncScope(work)
  const own = waiting.get(owner)
  if (own) own.push(inContext)
  else waiting.set(owner, [inContext])
  if (isBusy) return
  isBusy = true
  next()
}

/** Resolves in the turn of an owner. All that runs until the next `await` belongs to the turn. */
export function nextTurn(owner: string | undefined): Promise<void> {
  return new Promise((resolve) => takeTurn(owner, resolve))
}

function next(): void {
  const [first] = waiting
  if (!first) {
    isBusy = false
    return
  }
  const [owner, [work, ...rest]] = first
  // Behind the other owners.
  waiting.delete(owner)
  if (rest.length > 0) waiting.set(owner, rest)
  const begun = performance.now()
  try {
    work?.()
  } finally {
    // Promises that the work settles have been followed by then, and sockets have been read.
    setImmediate(() => {
      const took = performance.now() - begun
      if (took < SHORT_MS) next()
      else setTimeout(next, took)
    })
  }
}
