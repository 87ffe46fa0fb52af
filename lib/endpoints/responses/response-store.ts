/** The line and the account of a response. */
export interface ResponseRecord {
  readonly account: string
  /** The upstream's id, which the caller has too. */
  readonly id: string
  readonly line: string
  /** The catalogue's name of the model. */
  readonly model: string
  /** About how many input tokens it adds to a request that continues from it. */
  readonly tokens: number
  /** Milliseconds since the epoch. */
  readonly createdAt: number
}

/** A store for the lines of responses. Each operation is atomic and may be repeated. */
export interface ResponseStore {
  /** Writes a record; replaces one with the same account and id. */
  remember(record: ResponseRecord): Promise<void>

  /**
   * Returns the record of an account's response. Ids are the upstreams', so that two lines can use the same one for two
   * accounts. Returns undefined if one line has used the id for several accounts: it is unknown whose response the line
   * would return.
   */
  find(account: string, id: string): Promise<ResponseRecord | undefined>

  forget(account: string, id: string): Promise<void>

  /** Deletes up to `limit` records created before a time, and returns how many it deleted. */
  prune(before: number, limit: number): Promise<number>
}

/** Returns an account's record among those with one id, unless its line has used the id for another account too. */
export function ownRecord(records: readonly ResponseRecord[], account: string): ResponseRecord | undefined {
  const own = records.find((record) => record.account === account)
  const isShared = records.some((record) => record !== own && record.line === own?.line)
  return isShared ? undefined : own
}
