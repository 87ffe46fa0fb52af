export { type CacheHandler, type CacheOptions, cache } from './cache.ts'
export type { CacheStore } from './cached-answers.ts'
