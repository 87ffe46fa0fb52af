/** Requests per minute, input tokens per minute; null = unlimited. */
export interface KeyLimits {
  readonly rpm: number | null
  readonly tpm: number | null
}

/** The limits of an account. Concurrency has a limit per account only. */
export interface AccountLimits extends KeyLimits {
  readonly concurrency: number | null
}

/** Limits of which some may be absent. */
export type PartialLimits<Limits> = { readonly [Name in keyof Limits]?: Limits[Name] | undefined }

/** Returns all limits of a key. An absent one is unlimited. */
export function keyLimitsOf({ rpm = null, tpm = null }: PartialLimits<KeyLimits> = {}): KeyLimits {
  return { rpm, tpm }
}

/** Returns all limits of an account. An absent one is unlimited. */
export function accountLimitsOf({
  concurrency = null,
  ...limits
}: PartialLimits<AccountLimits> = {}): AccountLimits {
  return { ...keyLimitsOf(limits), concurrency }
}
