export type { Candidate } from './candidate.ts'
export type { CircuitState } from './circuit.ts'
export {
  type ForwardOptions,
  type ForwardRule,
  type ForwardTarget,
  type ForwardToOptions,
  forward,
  forwardTo,
} from './forward.ts'
export { LineAccess, type Offer, type Placed, type TurnOutcome } from './line-access.ts'
export { type LineFigures, type LineReading, LineRegistry, type LineStatus } from './line-state.ts'
export { LineSwitches, type LineSwitchesOptions } from './line-switches.ts'
export { type RouteOptions, route } from './route.ts'
export type { RoutingOptions } from './routing-options.ts'
export type { Strategy, StrategyName } from './strategies.ts'
