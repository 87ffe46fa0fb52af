import { ConfigError } from 'express-model-gateway/config'

/** Returns the message of a thrown value, on one line. */
export function errorText(error: unknown): string {
  if (error instanceof AggregateError && error.message === '') return error.errors.map(errorText).join(', ')
  return (error instanceof Error ? error.message : String(error)).replaceAll(/\s+/g, ' ')
}

/** Prints why this process cannot start, one line per fault, and ends it with code 1. */
export function exitWithErrors(error: unknown): never {
  const faults = error instanceof ConfigError ? error.faults : [errorText(error)]
  for (const fault of faults) console.error(fault)
  process.exit(1)
}
