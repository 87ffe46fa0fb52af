export type { Candidate } from '../../routing/candidates/candidate.ts'
export type { RoutingOptions } from '../../routing/candidates/routing-options.ts'
export type { Strategy, StrategyName } from '../../routing/candidates/strategies.ts'
export {
  LineAccess,
  type Offer,
  type Placed,
  type TurnOutcome,
} from '../../routing/line-access.ts'
export type { CircuitState } from '../../routing/lines/circuit.ts'
export {
  type LineFigures,
  type LineOutline,
  type LineReading,
  LineRegistry,
  type LineStatus,
} from '../../routing/lines/line-state.ts'
export { LineSwitches, type LineSwitchesOptions } from '../../routing/lines/line-switches.ts'
export { type RouteOptions, route } from './route.ts'
