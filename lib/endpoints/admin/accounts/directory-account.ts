import type { AccountLimits } from '../../../core/call/index.ts'
import type { Account } from './account-store.ts'

/** The members of an account that the directory of keys has. */
export interface DirectoryAccount {
  readonly id: string
  readonly limits: AccountLimits
  readonly regions: readonly string[] | null
  readonly lineRegions: readonly string[] | null
  readonly suspended: boolean
}

export type AccountOfKeys = Pick<Account, 'id' | 'limits' | 'regions' | 'lineRegions' | 'status'>

export function directoryAccount({
  id,
  limits,
  regions,
  lineRegions,
  status,
}: AccountOfKeys): DirectoryAccount {
  return { id, limits, regions, lineRegions, suspended: status === 'suspended' }
}
