import { isDeepStrictEqual } from 'node:util'
import { NO_TAGS, parseAmount, tagsOf } from '../../../core/catalog/index.ts'
import type { ParsedAccount, ParsedKey } from '../../../core/config/index.ts'
import type { AccountSettings } from '../accounts/account-store.ts'
import type { KeySettings } from '../keys/key-store.ts'

/** An account and a key of a config. Members with a default may be left out. */
export type ConfigAccount = Pick<ParsedAccount, 'id'> & Partial<ParsedAccount>
export type ConfigKey = Pick<ParsedKey, 'id' | 'account' | 'secret'> & Partial<ParsedKey>

/** Returns the settings of an account as a config gives them. An account that it names is active. */
export function accountSettingsOf(account: ConfigAccount): AccountSettings {
  return {
    name: account.name ?? null,
    prepaid: account.balance !== undefined,
    limits: account.limits ?? { rpm: null, tpm: null, concurrency: null },
    regions: account.regions ?? null,
    lineRegions: account.lineRegions ?? null,
    status: 'active',
  }
}

/** Returns the settings of a key as a config gives them. */
export function keySettingsOf(key: ConfigKey): KeySettings & { readonly account: string } {
  return {
    account: key.account,
    name: key.name ?? null,
    note: key.note ?? null,
    tags: tagsOf(Object.entries(key.tags ?? NO_TAGS)),
    enabled: key.enabled ?? true,
    expiresAt: key.expiresAt === undefined ? null : Date.parse(key.expiresAt),
    quota: key.quota === undefined ? null : parseAmount(key.quota),
    allowIps: key.allowIps ?? null,
    allowModels: key.allowModels ?? null,
    limits: key.limits ?? { rpm: null, tpm: null },
  }
}

/** Returns the names of the members in which two settings differ, those of limits as `limits.rpm`. */
export function differingMembers<Settings extends AccountSettings | KeySettings>(
  wanted: Settings,
  found: Settings,
): string[] {
  const members: string[] = []
  for (const name of Object.keys(wanted) as (keyof Settings & string)[]) {
    if (name !== 'limits') {
      if (!isDeepStrictEqual(wanted[name], found[name])) members.push(name === 'prepaid' ? 'balance' : name)
      continue
    }
    const limits = new Map(Object.entries(found.limits))
    for (const [limit, value] of Object.entries(wanted.limits))
      if (value !== limits.get(limit)) members.push(`limits.${limit}`)
  }
  return members
}
