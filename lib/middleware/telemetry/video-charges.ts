import { notedStore } from './noted-store.ts'

/** A video task as far as its charge goes. */
export interface ChargedTask {
  readonly model: string
  /** null where no line ever told it, so that an operator has said what it came to. */
  readonly upstreamId: string | null
  /** In nano-units; null where nothing was charged. */
  readonly charge: { readonly amount: bigint } | null
}

type Created = Promise<ChargedTask | undefined>
type Observed = Promise<
  { readonly task: ChargedTask; readonly result: 'unchanged' | 'changed' | 'finished' } | undefined
>

type Resolved = Promise<{ readonly task: ChargedTask; readonly kind: string } | undefined>

/** A `TaskStore` as far as it charges. */
export interface ChargingStore {
  created(...args: never): Created
  observe(...args: never): Observed
  resolve(...args: never): Resolved
}

/**
 * Notes what videos are charged, for metrics: they are charged when they are seen to be done, whoever asks, and not when the
 * call that made them ends.
 *
 * @example
 * const videos = new VideoCharges()
 * const tasks = videos.watching(new SqlTaskStore(db))
 * app.use(telemetry({ catalog, states: { videos } }))
 * const video = videoEndpoints({ tasks, lines: new LineAccess({ catalog }) })
 * const settler = new TaskSettler({ store: tasks, clients: video.clients })
 */
export class VideoCharges {
  readonly #listeners = new Map<object, (model: string, amount: bigint) => void>()

  /** The same store, whose charges are noted. Each is, once, by the process that writes it. */
  watching<S extends ChargingStore>(store: S): S {
    return notedStore(store, (operation, answer) => {
      // What fails is told to whoever asked.
      if (operation === 'created')
        (answer as Created).then((task) => {
          // One that an operator has ended in the meantime was noted where that was written.
          if (task && task.upstreamId !== null) this.#note(task)
        }, ignore)
      if (operation === 'observe')
        (answer as Observed).then((observed) => {
          if (observed?.result === 'finished') this.#note(observed.task)
        }, ignore)
      if (operation === 'resolve')
        (answer as Resolved).then((resolved) => {
          if (resolved?.kind === 'resolved') this.#note(resolved.task)
        }, ignore)
    })
  }

  /** Tells of charges from now on; one listener for each `key`. */
  follow(key: object, listener: (model: string, amount: bigint) => void): void {
    this.#listeners.set(key, listener)
  }

  #note(task: ChargedTask): void {
    if (!task.charge) return
    for (const tell of this.#listeners.values()) tell(task.model, task.charge.amount)
  }
}

function ignore(): void {}
