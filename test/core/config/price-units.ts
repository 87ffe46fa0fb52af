/** The units for which a model or a pass-through rule may have a price; only a rule has `perMinute`. */
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
