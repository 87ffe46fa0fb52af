/**
 * The usage of calls by hours. The dimensions of a row are those that its grain tells apart; the others are empty, as are those
 * that a call does not have.
 */
export interface UsageTable {
  account: string
  grain: number
  /** Where the hour, the day or the month begins, in hours since the epoch. */
  hour: bigint
  /** Of all dimensions that follow: an index row must be small. */
  digest: string
  key: string
  model: string
  line: string
  user_id: string
  /** As JSON. */
  tags: string
  requests: bigint
  refused: bigint
  failed: bigint
  input_tokens: bigint
  cached_input_tokens: bigint
  output_tokens: bigint
  images: bigint
  milliseconds: bigint
  charged: bigint
  cost: bigint
  d0: bigint
  d1: bigint
  d2: bigint
  d3: bigint
  d4: bigint
  d5: bigint
  d6: bigint
  d7: bigint
  d8: bigint
  d9: bigint
  d10: bigint
  d11: bigint
}

/** How far something has come, by its name. */
export interface UsageMarksTable {
  name: string
  mark: string
}
