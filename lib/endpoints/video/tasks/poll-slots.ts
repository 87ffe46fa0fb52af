import type { VideoTask } from '../../../ledger/tasks/task.ts'

/** The share of all slots that the polls of a line, or of an account, have after one that failed. */
const SHARE_OF_FAILING = 4
const MAX_FAILING = 10_000

/** The line and the account of a task, each of which may delay its polls. */
type SlotOwner = Pick<VideoTask, 'line' | 'account'>

/**
 * The slots for polls that run at the same time. A line whose last read was not answered, or an account for which the last
 * result could not be written, gets a share of them only: each of its polls may take as long as it is waited for.
 */
export class PollSlots {
  /** The largest number of polls at the same time. */
  readonly #most: number
  readonly #running = new Map<string, number>()
  readonly #failing = new Set<string>()

  constructor(most: number) {
    this.#most = most
  }

  /** Takes a slot. Returns a function that gives it back; undefined if the line or the account has all that it may. */
  take(owner: SlotOwner): (() => void) | undefined {
    const names = namesOf(owner)
    const most = Math.ceil(this.#most / SHARE_OF_FAILING)
    if (names.some((name) => this.#failing.has(name) && (this.#running.get(name) ?? 0) >= most))
      return undefined
    for (const name of names) this.#add(name, 1)
    return () => {
      for (const name of names) this.#add(name, -1)
    }
  }

  /** Notes whether the line of a task has answered. */
  answered({ line }: SlotOwner, has: boolean): void {
    this.#note(nameOf('line', line), has)
  }

  /** Notes whether the result for an account was written. */
  written({ account }: SlotOwner, was: boolean): void {
    this.#note(nameOf('account', account), was)
  }

  #note(name: string, isSound: boolean): void {
    if (isSound) this.#failing.delete(name)
    else {
      // Other processes may have ended the tasks of many.
      if (this.#failing.size >= MAX_FAILING) this.#failing.clear()
      this.#failing.add(name)
    }
  }

  #add(name: string, more: number): void {
    const running = (this.#running.get(name) ?? 0) + more
    if (running > 0) this.#running.set(name, running)
    else this.#running.delete(name)
  }
}

function namesOf({ line, account }: SlotOwner): readonly string[] {
  return [nameOf('line', line), nameOf('account', account)]
}

function nameOf(kind: 'line' | 'account', id: string): string {
  return `${kind} ${id}`
}
