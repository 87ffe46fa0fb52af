export type {
  CreateTarget,
  KnownObservation,
  Observation,
  ObservedState,
  TaskCharge,
  TaskError,
  TaskIntent,
  TaskState,
  VideoFacts,
  VideoTask,
  VideoUsage,
} from '../../ledger/tasks/task.ts'
export type { Resolved, TaskResolution } from '../../ledger/tasks/task-resolution.ts'
export type {
  CreatedTask,
  Intended,
  Observed,
  PollAgain,
  PollClaim,
  TaskPage,
  TaskQuery,
  TaskStore,
} from '../../ledger/tasks/task-store.ts'
export {
  VIDEO_CREATE_PATHS,
  VIDEO_PATHS,
  type VideoEndpoints,
  type VideoEndpointsOptions,
  videoEndpoints,
} from './endpoints.ts'
export type {
  CancelOutcome,
  ContentSource,
  CreateOutcome,
  LineClient,
  LineClients,
  LineReply,
  ReadOutcome,
} from './tasks/line-client.ts'
export {
  MemoryTaskStore,
  type MemoryTaskStoreOptions,
  type TaskCalls,
  type TaskClaims,
  type TaskMoney,
} from './tasks/memory-task-store.ts'
export { TaskSettler, type TaskSettlerOptions } from './tasks/task-settler.ts'
