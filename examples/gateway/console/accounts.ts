/** An account as operators and its own keys see it. Amounts are decimal strings. */
export interface Account {
  readonly id: string
  readonly prepaid: boolean
  readonly deposited: string
  readonly spent: string
  readonly balance: string
  readonly leased: string
  readonly available: string
  readonly limits: Limits
  /** For operators. */
  readonly name?: string | null
  readonly status?: 'active' | 'suspended'
  readonly regions?: readonly string[] | null
  readonly line_regions?: readonly string[] | null
  /** What the settings name that does not exist. */
  readonly warnings?: readonly string[]
  readonly created_at?: string
}

export interface Limits {
  readonly rpm: number | null
  readonly tpm: number | null
  readonly concurrency?: number | null
}

/** A lease of a process on the balance of an account or a key. */
export interface Lease {
  readonly id: string
  /** `account:<id>` or `key:<id>` */
  readonly wallet: string
  readonly owner: string
  readonly held: string
  readonly renewed_at: string
}
