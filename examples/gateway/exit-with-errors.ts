import { ConfigError } from 'express-model-gateway/config'
import { errorText } from './error-text.ts'

/** Prints why this process cannot start, one line per fault, and ends it with code 1. */
export function exitWithErrors(error: unknown): never {
  const faults = error instanceof ConfigError ? error.faults : [errorText(error)]
  for (const fault of faults) console.error(fault)
  process.exit(1)
}
