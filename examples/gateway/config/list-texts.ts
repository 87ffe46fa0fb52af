import { createHash } from 'node:crypto'

/** The text of accounts or keys in a config file. */
export interface ListText {
  /** `accounts` or `keys`. */
  readonly name: string
  readonly begin: number
  readonly end: number
}

/** Returns a text without these lists, which are in their order. */
export function restOf(text: string, lists: readonly ListText[]): string {
  let rest = ''
  let at = 0
  for (const { begin, end } of lists) {
    rest += text.slice(at, begin)
    at = end
  }
  return rest + text.slice(at)
}

/** Identifies what is written in these lists: where it is the same, so are the accounts and keys. */
export function digestOf(text: string, lists: readonly ListText[]): string {
  const hash = createHash('sha256')
  for (const { name, begin, end } of lists)
    hash.update(`${name} ${end - begin}\n`).update(text.slice(begin, end))
  return hash.digest('base64url')
}
