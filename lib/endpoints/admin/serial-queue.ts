/** Runs tasks one after another, so that no task sees the half-done changes of another. */
export class SerialQueue {
  #last: Promise<unknown> = Promise.resolve()

  /** Runs a task behind all earlier ones and returns its result. */
  run<T>(task: () => Promise<T>): Promise<T> {
    const result = this.#last.then(task)
    this.#last = result.catch(() => {})
    return result
  }
}
