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
  KnownObservation,
  LineClient,
  LineClients,
  LineReply,
  ReadOutcome,
} from './line-client.ts'
export {
  MemoryTaskStore,
  type MemoryTaskStoreOptions,
  type TaskCalls,
  type TaskClaims,
  type TaskMoney,
} from './memory-task-store.ts'
export { RecordKeeper, type RecordKeeperOptions } from './record-keeper.ts'
export {
  FORGOTTEN_MS,
  isFinished,
  LONGEST_HOLD_MS,
  type Observation,
  type ObservedState,
  type TaskCharge,
  type TaskError,
  type TaskIntent,
  type TaskState,
  taskIdOf,
  type VideoFacts,
  type VideoTask,
  type VideoUsage,
} from './task.ts'
export { costOfTask, mostItCosts } from './task-cost.ts'
export { TaskSettler, type TaskSettlerOptions } from './task-settler.ts'
export type {
  CreatedTask,
  Intended,
  Observed,
  PollAgain,
  PollClaim,
  TaskPage,
  TaskQuery,
  TaskStore,
} from './task-store.ts'
