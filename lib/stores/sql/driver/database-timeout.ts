/**
 * Postgres did not answer a statement in time, nor that it has ended it, as it was told to. What was asked for may have
 * happened all the same. The time is `statementTimeoutMs` of
 * `openDatabase`.
 */
export class DatabaseTimeout extends Error {
  override readonly name = 'DatabaseTimeout'
}
