import { formatAmount } from '../../../core/catalog/index.ts'
import { type ChangeOrigin, changedSettings, type RecordedChange } from '../../../core/change-log/index.ts'
import { isoTime } from '../../../core/json-api/index.ts'
import type { Key, KeySettings } from './key-store.ts'

export function keyChange(
  action: 'key.created' | 'key.rotated' | 'key.deleted',
  key: Key,
  origin: ChangeOrigin,
): RecordedChange {
  const before = action === 'key.created' ? null : describeSettings(key)
  const overlap = key.previousUntil !== null && action === 'key.rotated' && describeOverlap(key)
  const after = action === 'key.deleted' ? null : { ...describeSettings(key), ...overlap }
  return { ...origin, action, subject: key.id, before, after }
}

/** Returns the record of changed settings; undefined if nothing changed. */
export function keySettingsChange(key: Key, previous: Key, origin: ChangeOrigin): RecordedChange | undefined {
  const sides = { before: describeSettings(previous), after: describeSettings(key) }
  return changedSettings('key.changed', key.id, sides, origin)
}

/** Returns until when the previous secret is valid, as the API answers it. */
export function describeOverlap({ previousUntil }: Pick<Key, 'previousUntil'>) {
  return { previous_secret_expires_at: isoTime(previousUntil) }
}

/** Returns the settings as the API answers them. */
export function describeSettings(key: KeySettings & { readonly account: string }) {
  return {
    account: key.account,
    name: key.name,
    note: key.note,
    tags: key.tags,
    enabled: key.enabled,
    expires_at: isoTime(key.expiresAt),
    quota: key.quota === null ? null : formatAmount(key.quota),
    allow_ips: key.allowIps,
    allow_models: key.allowModels,
    limits: key.limits,
  }
}
