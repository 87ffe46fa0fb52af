export type { Decision, GuardFunction } from './checker.ts'
export { type GuardOptions, guard } from './guard.ts'
export { type ModerationOptions, moderation } from './moderation.ts'
export { type PatternsOptions, patterns } from './patterns.ts'
