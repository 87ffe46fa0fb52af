import type { ChangeLog } from '../../lib/core/change-log/index.ts'
import type { AccountStore, KeySettings, KeyStore, LedgerView, NewKey } from '../../lib/management/index.ts'
import { hashSecret, type KeyDirectory } from '../../lib/middleware/authenticate/index.ts'

/** A store to try, with nothing in it, and what stands behind it. */
export interface KeyStoreUnderTest {
  keys: KeyStore
  accounts: AccountStore
  directory: KeyDirectory
  ledger: LedgerView
  changes: ChangeLog
  close(): Promise<void>
}

export const OPEN_KEY: KeySettings = {
  name: null,
  note: null,
  tags: {},
  enabled: true,
  expiresAt: null,
  quota: null,
  allowIps: null,
  allowModels: null,
  limits: { rpm: null, tpm: null },
}

export const FULL_KEY: KeySettings = {
  name: 'Åcme, search',
  note: 'ask Ada\nbefore it is changed',
  tags: { team: 'search', env: 'prod' },
  enabled: false,
  expiresAt: Date.UTC(2030, 0, 1),
  quota: 5_000_000_000n,
  allowIps: ['10.0.0.0/8', '::1'],
  allowModels: ['chat-*', 'Åcme "model"'],
  limits: { rpm: 60, tpm: 5_000_000_000 },
}

export const newKey = (id: string, settings: KeySettings = OPEN_KEY, account = 'acme'): NewKey => ({
  ...settings,
  id,
  account,
  secretHash: hashSecret(`sk-${id}`),
})
