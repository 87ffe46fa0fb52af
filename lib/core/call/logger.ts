/** What the toolkit logs with: pino's shape, so that a pino logger fits as it is. */
export interface Logger {
  info(fields: object, message: string): void
  warn(fields: object, message: string): void
  error(fields: object, message: string): void
}

/** Warnings and errors to the console: what is wrong is never silent, even where nobody set a logger. */
export const consoleLogger: Logger = {
  info: () => {},
  warn: (fields, message) => console.warn(message, fields),
  error: (fields, message) => console.error(message, fields),
}
