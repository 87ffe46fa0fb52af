import type { Limits } from './accounts.ts'
import { namesIn, numberIn, pairsIn } from './parts/form.ts'

/** An API key as operators see it. */
export interface Key {
  readonly id: string
  readonly account: string
  readonly name: string | null
  readonly note: string | null
  /** Every call with the key has them. */
  readonly tags: Readonly<Record<string, string>>
  readonly enabled: boolean
  readonly expires_at: string | null
  readonly quota: string | null
  readonly allow_ips: readonly string[] | null
  readonly allow_models: readonly string[] | null
  readonly limits: Limits
  /** What the settings name that does not exist. */
  readonly warnings?: readonly string[]
  readonly spent: string
  readonly leased: string
  readonly available: string | null
  /** Until when the secret before the last rotation is valid; null: it is not. */
  readonly previous_secret_expires_at: string | null
  /** To about a minute; null: never. */
  readonly last_used_at: string | null
  readonly created_at: string
  /** In the answer to a new key or secret only. */
  readonly secret?: string
}

/** Returns the settings of a form as a request body; empty fields remove a restriction. */
export function keySettingsIn(filled: Readonly<Record<string, string>>): object {
  const { quota = '', expires_at: expires = '', allow_models: models = '', allow_ips: ips = '' } = filled
  return {
    name: filled.name || null,
    note: filled.note || null,
    tags: pairsIn(filled.tags),
    quota: quota === '' ? null : quota,
    expires_at: expires === '' ? null : new Date(expires).toISOString(),
    allow_models: namesIn(models),
    allow_ips: namesIn(ips),
    limits: { rpm: numberIn(filled.rpm), tpm: numberIn(filled.tpm) },
  }
}
