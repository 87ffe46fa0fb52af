export { type ForwardTarget, type ForwardToOptions, forward, forwardTo } from './forward.ts'
export type { ForwardOptions, ForwardRule } from './forward-options.ts'
