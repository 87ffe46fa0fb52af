export type { Candidate } from '../../routing/candidates/candidate.ts'
export type { RoutingOptions } from '../../routing/candidates/routing-options.ts'
export type { Strategy, StrategyName } from '../../routing/candidates/strategies.ts'
export {
  LineAccess,
  type Submission,
  type SubmitOutcome,
  type Submitted,
} from '../../routing/line-access.ts'
export type { CircuitState } from '../../routing/lines/account-breaker.ts'
export { type Availability, joinAvailability } from '../../routing/lines/availability.ts'
export { LineModels, type LineModelsOptions } from '../../routing/lines/line-models.ts'
export { LineRegistry } from '../../routing/lines/line-registry.ts'
export { LineSharing, type LineSharingOptions } from '../../routing/lines/line-sharing.ts'
export type { LineNote, LineStateStore, StandingNote } from '../../routing/lines/line-state-store.ts'
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
