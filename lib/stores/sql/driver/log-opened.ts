import type { Logger } from '../../../core/call/index.ts'

/** The databases that each logger has logged. */
const logged = new WeakMap<Logger, Set<string>>()

/** Logs once that a database was opened: a gateway opens several handles of it with one logger. */
export function logOpened(
  logger: Logger,
  facts: { readonly file: string } | { readonly database: string },
): void {
  const known = logged.get(logger) ?? new Set()
  logged.set(logger, known)
  const name = JSON.stringify(facts)
  if (known.has(name)) return
  known.add(name)
  logger.info(facts, 'database opened')
}
