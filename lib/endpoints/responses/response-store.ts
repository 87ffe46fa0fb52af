/** Which line has a response, and whose it is. */
export interface ResponseRecord {
  readonly account: string
  /** The upstream's id, which is the caller's too. */
  readonly id: string
  readonly line: string
  /** The catalogue's name of the model. */
  readonly model: string
  /** About how many tokens it brings into a conversation that goes on from it. */
  readonly tokens: number
  /** Milliseconds since the epoch. */
  readonly createdAt: number
}

/** Where it is kept which line has which response. Each operation is atomic and may be repeated. */
export interface ResponseStore {
  /** Notes a response; what is known of it by its account and id is replaced. */
  remember(record: ResponseRecord): Promise<void>

  /**
   * The response of this account with this id. Ids are the upstreams': two lines may give the same one, and then each
   * account has its own. Undefined also where one line has given the id to several accounts: nobody can tell then whose
   * response it would answer with.
   */
  find(account: string, id: string): Promise<ResponseRecord | undefined>

  forget(account: string, id: string): Promise<void>

  /** Deletes up to `limit` of the records created before a time; answers how many. */
  prune(before: number, limit: number): Promise<number>
}

/** Of all records with one id, the one of an account, unless its line has given the id to another account as well. */
export function ownRecord(records: readonly ResponseRecord[], account: string): ResponseRecord | undefined {
  const own = records.find((record) => record.account === account)
  const isShared = records.some((record) => record !== own && record.line === own?.line)
  return isShared ? undefined : own
}
