/** Returns the message of a thrown value, on one line. */
export function errorText(error: unknown): string {
  if (error instanceof AggregateError && error.message === '') return error.errors.map(errorText).join(', ')
  return (error instanceof Error ? error.message : String(error)).replaceAll(/\s+/g, ' ')
}
