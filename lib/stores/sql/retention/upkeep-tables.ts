/** Work on the tables that one process at a time does. */
export interface UpkeepTable {
  name: string
  /** Who does it; null: nobody. */
  owner: string | null
  /** When another process may take it over, if its owner has not said by then that it goes on; in milliseconds since the epoch. */
  until: bigint | null
  /** How far it has come. */
  mark: string | null
}
