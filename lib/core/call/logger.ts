/** The logger of the toolkit. A pino logger fits as it is. */
export interface Logger {
  info(fields: object, message: string): void
  warn(fields: object, message: string): void
  error(fields: object, message: string): void
}

/** Logs warnings and errors to the console. It is the default logger, so that no problem goes unseen. */
export const consoleLogger: Logger = {
  info: () => {},
  warn: (fields, message) => console.warn(message, fields),
  error: (fields, message) => console.error(message, fields),
}

const LEVELS: ReadonlySet<unknown> = new Set(['info', 'warn', 'error'])

/** The quiet loggers, by the logger that they stand for; each stands for itself, too. */
const quiet = new WeakMap<Logger, Logger>([[consoleLogger, consoleLogger]])

/**
 * Returns a logger that never fails, in all else the given one: a line that cannot be logged costs no call anything.
 * Without a logger it is the console.
 */
export function quietLogger(given: Logger = consoleLogger): Logger {
  const known = quiet.get(given)
  if (known) return known
  const made = new Proxy(given, {
    get(target, name) {
      const member: unknown = Reflect.get(target, name, target)
      if (!LEVELS.has(name) || typeof member !== 'function') return member
      return (...line: unknown[]) => logQuietly(() => member.apply(target, line))
    },
  })
  quiet.set(given, made)
  quiet.set(made, made)
  return made
}

function logQuietly(log: () => unknown): void {
  try {
    const logged = log() as Partial<PromiseLike<unknown>> | null | undefined
    if (typeof logged?.then === 'function') logged.then(undefined, () => {})
  } catch {}
}
