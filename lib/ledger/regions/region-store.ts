import type { WalletId } from '../wallet.ts'

/*
 * Money of a wallet that is in another region than its home: a share. Home holds it as leased until the region reports that
 * it was spent, or returns it. What each side knows of a share are sums since it was opened, which never fall (but for
 * `spent`, from which voids are taken): so a message that is lost, repeated or late moves nothing twice, and whoever comes
 * next finishes what a crash has left. Amounts are nano-units.
 */

/** What a region has of a wallet, as its own database has it. */
export interface Share {
  readonly wallet: WalletId
  readonly limited: boolean
  /** Received less returned. */
  readonly funds: bigint
  readonly spent: bigint
  /** Held by the processes of the region. */
  readonly leased: bigint
  /** The balance beside this share, as home told it last. */
  readonly elsewhere: bigint
  /** When a process used it last, in milliseconds since the epoch. */
  readonly usedAt: number
  /** Whether home knows all that was spent and returned. */
  readonly isTold: boolean
}

/** What a region tells of a share. */
export interface ShareReport {
  readonly wallet: WalletId
  /** Home ignores a report that is not later than the last one. */
  readonly seq: number
  /** What the region has received in all. If home has granted more, that is on its way, and home grants nothing. */
  readonly received: bigint
  readonly returned: bigint
  readonly spent: bigint
}

/** A report, as it is prepared, and what there is to spend. */
export interface PreparedReport extends ShareReport {
  /** Funds less what is spent; below 0 if more was spent than received. */
  readonly balance: bigint
  readonly leased: bigint
}

/** What a region asks for beside its report. */
export interface ShareRequest extends ShareReport {
  /** Nothing is granted if that much is not available; 0n: nothing has to be. */
  readonly need: bigint
  /** Is granted if it is at most a tenth of what is available; else that tenth, but at least `need`. */
  readonly want: bigint
}

/** The answer of a home. */
export interface ShareAnswer {
  readonly wallet: WalletId
  /** What it has granted in all. */
  readonly granted: bigint
  /** The balance beside this share. */
  readonly elsewhere: bigint
}

/** The part of a region's own database that is about shares. Each operation is one transaction. */
export interface ShareStore {
  /** Returns the homes of wallets that are shares; other wallets are left out. */
  homesOf(wallets: readonly WalletId[]): Promise<ReadonlyMap<WalletId, string>>

  /** Records that shares are in use. Returns those that it leaves out, because somebody else has locked them. */
  touch(wallets: readonly WalletId[], at: number): Promise<readonly WalletId[]>

  /** Returns the shares of a home that are in use. */
  inUse(home: string): Promise<readonly Share[]>

  /** Has the shares of a home in use that have something to report. */
  wake(home: string): Promise<void>

  /** Ends the use of shares that were not used since `before`, if home knows all about them. */
  rest(wallets: readonly WalletId[], before: number): Promise<void>

  /**
   * Takes what is to be returned out of shares, as far as it is neither leased nor spent, and numbers a report of each. Unknown
   * shares are left out.
   */
  prepare(
    shares: readonly { readonly wallet: WalletId; readonly give: bigint }[],
  ): Promise<readonly PreparedReport[]>

  /** Adds what home has granted beyond what was received, and records what home knows. */
  apply(answers: readonly { readonly answer: ShareAnswer; readonly report: ShareReport }[]): Promise<void>

  /**
   * Has a process look after the shares of a home until a time, and nobody else.
   *
   * @returns when home last answered, in milliseconds since the epoch; undefined if another process looks after them.
   */
  claim(home: string, owner: string, at: number, until: number): Promise<number | undefined>

  /** Records that the copies of a home were compared with it. */
  noteContact(home: string, at: number): Promise<void>
}

/** The part of the database of another region that is about the shares of its wallets. */
export interface HomeStore {
  /**
   * Takes reports, and grants what is asked for. Leaves out unknown wallets, and those that somebody else has locked.
   *
   * @param region which reports.
   */
  exchange(region: string, requests: readonly ShareRequest[], at: number): Promise<readonly ShareAnswer[]>

  /** Rejects while it cannot be reached. */
  ping(): Promise<void>
}

/** The copies of accounts and keys of other regions. */
export interface Mirrors {
  /**
   * Makes the copies that are in use what they are at home now.
   *
   * @param ask asks the home, under a time limit.
   */
  refresh(home: string, ask: <T>(question: () => Promise<T>) => Promise<T>): Promise<void>
  /** Forgets the keys of a home, so that none is accepted until it answers. */
  expire(home: string): Promise<void>
}
