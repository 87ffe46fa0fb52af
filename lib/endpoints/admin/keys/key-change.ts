import { isDeepStrictEqual } from 'node:util'
import { formatAmount } from '../../../core/catalog/index.ts'
import type { ChangeOrigin, RecordedChange } from '../../../core/change-log/index.ts'
import type { Key, KeySettings } from './key-store.ts'

/** What a store records of a key that is made, given another secret, or deleted. */
export function keyChange(
  action: 'key.created' | 'key.rotated' | 'key.deleted',
  key: Key,
  origin: ChangeOrigin,
): RecordedChange {
  const stood = action === 'key.created' ? null : describeSettings(key)
  const stands = action === 'key.deleted' ? null : describeSettings(key)
  return { ...origin, action, subject: key.id, before: stood, after: stands }
}

/** What a store records of changed settings; undefined where nothing is changed. */
export function keySettingsChange(key: Key, before: Key, origin: ChangeOrigin): RecordedChange | undefined {
  const stood = describeSettings(before)
  const stands = describeSettings(key)
  if (isDeepStrictEqual(stood, stands)) return undefined
  return { ...origin, action: 'key.changed', subject: key.id, before: stood, after: stands }
}

/** The settings in the words of the API. */
export function describeSettings(key: KeySettings & { readonly account: string }) {
  return {
    account: key.account,
    enabled: key.enabled,
    expires_at: key.expiresAt === null ? null : new Date(key.expiresAt).toISOString(),
    quota: key.quota === null ? null : formatAmount(key.quota),
    allow_ips: key.allowIps,
    allow_models: key.allowModels,
    limits: key.limits,
  }
}
