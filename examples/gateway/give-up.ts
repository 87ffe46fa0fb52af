import { ConfigError } from 'express-model-gateway'
import { oneLine } from './one-line.ts'

/** Says why this process cannot start, one line a fault, and ends it. */
export function giveUp(error: unknown): never {
  const faults = error instanceof ConfigError ? error.faults : [oneLine(error)]
  for (const fault of faults) console.error(fault)
  process.exit(1)
}
