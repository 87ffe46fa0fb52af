import type { Limits } from './accounts.ts'

/** An API key as operators see it. */
export interface Key {
  readonly id: string
  readonly account: string
  readonly enabled: boolean
  readonly expires_at: string | null
  readonly quota: string | null
  readonly allow_ips: readonly string[] | null
  readonly allow_models: readonly string[] | null
  readonly limits: Limits
  readonly spent: string
  readonly leased: string
  readonly available: string | null
  readonly created_at: string
}

/** The answer to a new key or secret; only this answer has the secret. */
export interface KeyWithSecret extends Key {
  readonly secret: string
}

/** Returns the settings of a form as a request body; empty fields remove a restriction. */
export function keySettingsIn(filled: Readonly<Record<string, string>>): object {
  const { quota = '', expires_at: expires = '', allow_models: models = '', allow_ips: ips = '' } = filled
  return {
    quota: quota === '' ? null : quota,
    expires_at: expires === '' ? null : new Date(expires).toISOString(),
    allow_models: wordsIn(models),
    allow_ips: wordsIn(ips),
    limits: { rpm: numberIn(filled.rpm), tpm: numberIn(filled.tpm) },
  }
}

function wordsIn(text: string): readonly string[] | null {
  const words = text.split(/[\s,]+/).filter((word) => word !== '')
  return words.length === 0 ? null : words
}

function numberIn(text = ''): number | null {
  return text === '' ? null : Number(text)
}
