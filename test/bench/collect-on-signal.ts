/** Preloaded into the targets of the memory case, so that what is garbage can be told from what is held. */
process.on('SIGUSR2', () => globalThis.gc?.())
