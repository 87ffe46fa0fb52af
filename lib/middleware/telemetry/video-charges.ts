import type { Tags } from '../../core/catalog/index.ts'
import { observedStore } from './observed-store.ts'

/** The parts of a video task that its charge depends on. */
export interface ChargedTask {
  readonly model: string
  /** Null if no line ever returned an id, and an operator ended the task. */
  readonly upstreamId: string | null
  /** In nano-units; null if nothing was charged. */
  readonly charge: { readonly amount: bigint } | null
  readonly account?: string
  readonly key?: string | null
  readonly user?: string | null
  readonly tags?: Tags
}

type Created = Promise<ChargedTask | undefined>
type Observed = Promise<{ readonly task: ChargedTask; readonly finished: boolean } | undefined>

type Resolved = Promise<{ readonly task: ChargedTask; readonly kind: string } | undefined>

/** The operations of a `TaskStore` that charge. */
export interface ChargingStore {
  created(...args: never): Created
  observe(...args: never): Observed
  resolve(...args: never): Resolved
}

/**
 * Counts the charges of videos for metrics. A video is charged when a poll sees that it is done, not when the call
 * that created it ends.
 *
 * @example
 * const videos = new VideoCharges()
 * const tasks = videos.watching(new SqlTaskStore(db))
 * app.use(telemetry({ catalog, states: { videos } }))
 * const video = videoEndpoints({ tasks, lines: new LineAccess({ catalog }) })
 * const settler = new TaskSettler({ store: tasks, clients: video.clients })
 */
export class VideoCharges {
  readonly #listeners = new Map<object, (task: ChargedTask, amount: bigint) => void>()

  /** Wraps a task store so that its charges are counted. Each charge is counted once, by the process that writes it. */
  watching<S extends ChargingStore>(store: S): S {
    return observedStore(store, (operation, answer) => {
      // Errors are handled by the caller of the operation.
      if (operation === 'created')
        (answer as Created).then((task) => {
          // A task that an operator has ended meanwhile was counted by `resolve`.
          if (task && task.upstreamId !== null) this.#note(task)
        }, ignore)
      if (operation === 'observe')
        (answer as Observed).then((observed) => {
          if (observed?.finished) this.#note(observed.task)
        }, ignore)
      if (operation === 'resolve')
        (answer as Resolved).then((resolved) => {
          if (resolved?.kind === 'resolved') this.#note(resolved.task)
        }, ignore)
    })
  }

  /** Adds a listener for later charges. A `key` has one listener. */
  follow(key: object, listener: (task: ChargedTask, amount: bigint) => void): void {
    this.#listeners.set(key, listener)
  }

  #note(task: ChargedTask): void {
    if (!task.charge) return
    for (const listener of this.#listeners.values()) listener(task, task.charge.amount)
  }
}

function ignore(): void {}
