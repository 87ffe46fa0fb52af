export {
  type ForwardOptions,
  type ForwardRule,
  type ForwardTarget,
  type ForwardToOptions,
  forward,
  forwardTo,
} from './forward.ts'
