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
