/** Preloaded into the targets of the memory case: a signal collects the garbage, so that only held memory counts. */
process.on('SIGUSR2', () => globalThis.gc?.())
