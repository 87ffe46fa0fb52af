import type { KeyAnswer } from 'express-model-gateway/admin'

/** An API key as operators see it. */
export type Key = KeyAnswer & {
  /** In the answer to a new key or secret only. */
  readonly secret?: string
}
