/** How a circuit is open. */
export interface CircuitOpening {
  /** The account whose failures alone opened it, and that it is open for; undefined if it is open for all. */
  readonly holder: string | undefined
  /** Whether others than the holder may only probe. */
  readonly othersProbe: boolean
  /** Milliseconds until the first probe may pass; not above 0: one may pass now. */
  readonly leftMs: number
  /** For how long attempts had failed when it opened, in milliseconds. */
  readonly failedForMs: number
}

/** Attempts within the window of a circuit, and those among them that failed. */
export interface FailureCounts {
  readonly all: number
  readonly failures: number
  /** The account whose attempts failed; null if there were several, undefined if there was none. */
  readonly account: string | null | undefined
}

/** Ties a circuit to the same circuit in other processes. All is answered from memory. */
export interface CircuitLink {
  /** What the other processes have counted. */
  readonly elsewhere: FailureCounts
  /** Whether a probe may begin here: no other process has one, as far as is known. */
  mayProbe(ofOthers: boolean): boolean
  /** A call of the holder, or of others, was not let through. */
  wanted(ofOthers: boolean): void
  /** The circuit has opened or closed here, or a probe has begun or ended. */
  changed(): void
  /** An attempt has failed here. */
  failed(): void
  /** The time has come for a probe. */
  halfOpened(): void
  /** The circuit is of no use any more. */
  ended(): void
}
