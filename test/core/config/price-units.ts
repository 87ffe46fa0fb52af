/** What a model, or what is passed on, may have a price for; `perMinute` is of the latter only. */
export const PRICE_UNITS = [
  'inputPerMillion',
  'outputPerMillion',
  'cachedInputPerMillion',
  'cacheWritePerMillion',
  'cacheWrite1hPerMillion',
  'audioInputPerMillion',
  'audioOutputPerMillion',
  'perRequest',
  'perImage',
  'perSecond',
  'perSearchUnit',
  'perWebSearch',
] as const
