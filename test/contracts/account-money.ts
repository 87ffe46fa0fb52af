import type {
  AccountSettings,
  AccountStore,
  ChangeOrigin,
  LedgerView,
  RecordedChange,
} from '../../lib/management/index.ts'

/** A store to try, with nothing in it, and the ledger behind it. */
export interface AccountStoreUnderTest {
  accounts: AccountStore
  ledger: LedgerView
  /** Everything that was recorded, in its order. */
  changes(): Promise<readonly RecordedChange[]>
  close(): Promise<void>
}

export const PREPAID: AccountSettings = {
  name: null,
  prepaid: true,
  limits: { rpm: null, tpm: null, concurrency: null },
  regions: null,
  lineRegions: null,
  status: 'active',
}

let made = 0

/** As of an admin request of its own. */
export function originOf(actor = 'admin'): ChangeOrigin {
  made++
  return { requestId: `req_${String(made).padStart(6, '0')}`, actor, at: Date.UTC(2026, 0, 1) + made }
}

/** The figures of an account's wallet; undefined if there is none. */
export async function figuresOf({ ledger }: AccountStoreUnderTest, id: string) {
  const [wallet] = await ledger.wallets([`account:${id}`])
  return wallet && { funds: wallet.funds, spent: wallet.spent, leased: wallet.leased }
}

export function byFirst([one]: readonly unknown[], [other]: readonly unknown[]): number {
  return Number(one) - Number(other)
}
