// It stands apart from the client, whose types need the optional package pg.

/**
 * Thrown if Postgres neither answered a statement in time nor confirmed that it cancelled it. The statement may have
 * taken effect. The time is `statementTimeoutMs` of `openDatabase`.
 */
export class DatabaseTimeout extends Error {
  override readonly name = 'DatabaseTimeout'
}
