import { isDeepStrictEqual } from 'node:util'
import type { AccountLimits, KeyLimits } from '../../../core/call/index.ts'
import { NO_TAGS, parseAmount, type Tags, tagsOf } from '../../../core/catalog/index.ts'
import type { AccountSettings } from '../accounts/account-store.ts'
import type { KeySettings } from '../keys/key-store.ts'

/** An account of a config. */
export interface ConfigAccount {
  readonly id: string
  readonly name?: string | undefined
  /** The initial balance. Absent: postpaid. */
  readonly balance?: string | undefined
  readonly limits?: AccountLimits | undefined
  readonly regions?: readonly string[] | undefined
  readonly lineRegions?: readonly string[] | undefined
}

/** A key of a config. */
export interface ConfigKey {
  readonly id: string
  readonly account: string
  readonly secret: string
  readonly name?: string | undefined
  readonly note?: string | undefined
  readonly tags?: Tags | undefined
  readonly enabled?: boolean | undefined
  readonly expiresAt?: string | undefined
  readonly quota?: string | undefined
  readonly allowIps?: readonly string[] | undefined
  readonly allowModels?: readonly string[] | undefined
  readonly limits?: KeyLimits | undefined
}

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
