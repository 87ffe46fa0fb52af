const SIGNALS = ['SIGTERM', 'SIGINT'] as const

/** Ends the process with code 0 at a signal that comes while it is loaded. */
export function endAtSignals(): void {
  for (const signal of SIGNALS) process.on(signal, end)
}

/** To be called once the signals are taken otherwise. */
export function endAtSignalsNoMore(): void {
  for (const signal of SIGNALS) process.off(signal, end)
}

function end(): void {
  process.exit(0)
}
