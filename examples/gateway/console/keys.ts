import type { KeyAnswer } from 'express-model-gateway/admin'
import { namesIn, numberIn, pairsIn } from './parts/form.ts'

/** An API key as operators see it. */
export type Key = KeyAnswer & {
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
