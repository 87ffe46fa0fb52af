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
export { LineRegistry } from '../../routing/lines/line-registry.ts'
export type {
  LineFigures,
  LineOutline,
  LineReading,
  LineStatus,
  LineView,
  ModelRest,
  OpenCircuit,
} from '../../routing/lines/line-status.ts'
export { LineSwitches, type LineSwitchesOptions } from '../../routing/lines/line-switches.ts'
export { type RouteOptions, route } from './route.ts'
