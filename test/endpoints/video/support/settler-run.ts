import type { TestContext } from 'node:test'
import type { Logger } from '../../../../lib/core/call/index.ts'
import {
  type LineClient,
  TaskSettler,
  type TaskSettlerOptions,
  type TaskStore,
  type VideoTask,
} from '../../../../lib/endpoints/video/index.ts'
import { created, intended, intentOf, type Payer } from '../../../contracts/task-samples.ts'

/** A log that keeps its lines. */
export class KeptLog implements Logger {
  readonly told: { level: string; message: string; fields: Record<string, unknown> }[] = []

  info = this.#keep('info')
  warn = this.#keep('warn')
  error = this.#keep('error')

  about(words: RegExp): Record<string, unknown>[] {
    return this.told.filter(({ message }) => words.test(message)).map(({ fields }) => fields)
  }

  #keep(level: string) {
    return (fields: object, message: string) => void this.told.push({ level, message, fields: { ...fields } })
  }
}

/** A settler that hardly waits, closed after the test. */
export function settlerOn(
  t: TestContext,
  store: TaskStore,
  line: LineClient,
  options: Partial<TaskSettlerOptions> = {},
): TaskSettler {
  const settler = new TaskSettler({
    store,
    clients: () => line,
    pollMs: 5,
    shortestPollMs: 1,
    longestPollMs: 1,
    logger: new KeptLog(),
    ...options,
  })
  t.after(() => settler.close())
  return settler
}

/** A task that an upstream has had for a minute, and that is due. */
export async function dueTask(store: TaskStore, who: Payer, members = {}): Promise<VideoTask> {
  const createdAt = Date.now() - 60_000
  const intent = intentOf(who, { createdAt, ...members })
  await intended(store, intent)
  const task = await store.created(intent.id, created({ upstreamId: `up_${intent.id}` }), createdAt)
  if (!task) throw new Error('the intent is gone')
  return task
}
