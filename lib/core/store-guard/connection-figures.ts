/** The connections of a pool to a store. */
export interface ConnectionFigures {
  readonly used: number
  readonly idle: number
  /** Operations that wait for a connection, or on SQLite for the thread. */
  readonly waiting: number
}
