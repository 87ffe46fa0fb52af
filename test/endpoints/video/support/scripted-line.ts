import type { LineClient, ReadOutcome, VideoTask } from '../../../../lib/endpoints/video/index.ts'

/** How a line answers when it is asked about a task. */
export type ReadScript = (task: VideoTask, signal: AbortSignal) => ReadOutcome | Promise<ReadOutcome>

/** A line that is read as a script says, and notes who reads what at a time. */
export class ScriptedLine implements LineClient {
  /** Task ids, in the order in which they were read. */
  readonly reads: string[] = []
  /** Tasks that were read by two at a time. */
  readonly readTwice: string[] = []
  most = 0
  script: ReadScript
  readonly #reading = new Set<string>()

  constructor(script: ReadScript) {
    this.script = script
  }

  async read(task: VideoTask, signal: AbortSignal): Promise<ReadOutcome> {
    if (this.#reading.has(task.id)) this.readTwice.push(task.id)
    this.reads.push(task.id)
    this.#reading.add(task.id)
    this.most = Math.max(this.most, this.#reading.size)
    try {
      return await this.script(task, signal)
    } finally {
      this.#reading.delete(task.id)
    }
  }

  create = never
  cancel = never
  remove = never
  content = never
}

export const answered = (
  observation: Extract<ReadOutcome, { kind: 'answered' }>['observation'],
): ReadOutcome => ({
  kind: 'answered',
  observation,
  upstreamStatus: 200,
  detail: null,
})

export const missing: ReadOutcome = { kind: 'missing', upstreamStatus: 404, detail: 'no such task' }
export const away: ReadOutcome = {
  kind: 'away',
  code: 'upstream_error',
  upstreamStatus: null,
  detail: 'connection refused',
}

/** Answers `away` when the signal aborts. */
export function untilStopped(signal: AbortSignal): Promise<ReadOutcome> {
  return new Promise((resolve) => signal.addEventListener('abort', () => resolve(away), { once: true }))
}

async function never(): Promise<never> {
  throw new Error('a settler only reads')
}
