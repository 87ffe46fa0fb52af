/** A stream may have so many events, whatever their size; more only if they have so many bytes each, on average. */
const FREE_EVENTS = 4096
const MIN_EVENT_BYTES = 8

/** Finds out whether a stream consists of empty events. */
export class EventBounds {
  #events = 0
  #bytes = 0

  /** Counts the bytes of events that need no look. */
  credit(size: number): void {
    this.#bytes += size
  }

  /** Counts an event. Returns false if there are too many for their size. */
  admit(size: number): boolean {
    this.#bytes += size
    return ++this.#events <= FREE_EVENTS || this.#bytes >= this.#events * MIN_EVENT_BYTES
  }
}
