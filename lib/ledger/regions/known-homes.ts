/** More are forgotten, all at once. */
const MAX_KNOWN = 50_000

/** The homes of wallets or accounts, of which none moves. */
export class KnownHomes<Id extends string> {
  readonly #find: (ids: readonly Id[]) => Promise<ReadonlyMap<Id, string>>
  /** null: it is here. */
  readonly #known = new Map<Id, string | null>()

  /** @param find returns the homes of those that other regions have. */
  constructor(find: (ids: readonly Id[]) => Promise<ReadonlyMap<Id, string>>) {
    this.#find = find
  }

  note(id: Id, home: string): void {
    this.#known.set(id, home)
  }

  /**
   * Returns the homes of ids, as far as they are known by now; null: it is here.
   *
   * @param asked those that are asked for where their home is unknown. Defaults to all.
   */
  async of(
    ids: readonly Id[],
    asked: readonly Id[] = ids,
  ): Promise<ReadonlyMap<Id, string | null | undefined>> {
    // Taken out first: what is known may be forgotten while others are asked for.
    const homes = new Map(ids.map((id) => [id, this.#known.get(id)]))
    const unknown = [...new Set(asked)].filter((id) => homes.get(id) === undefined)
    if (unknown.length === 0) return homes
    const found = await this.#find(unknown)
    if (this.#known.size > MAX_KNOWN) this.#known.clear()
    for (const id of unknown) {
      const home = found.get(id) ?? null
      this.#known.set(id, home)
      homes.set(id, home)
    }
    return homes
  }
}
