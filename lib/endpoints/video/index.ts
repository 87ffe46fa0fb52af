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
} from './tasks/line-client.ts'
export {
  MemoryTaskStore,
  type MemoryTaskStoreOptions,
  type TaskCalls,
  type TaskClaims,
  type TaskMoney,
} from './tasks/memory-task-store.ts'
export { RetryingWriter, type RetryingWriterOptions } from './tasks/retrying-writer.ts'
export {
  type CreateTarget,
  FORGOTTEN_MS,
  isFinished,
  MAX_HOLD_MS,
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
} from './tasks/task.ts'
export { costOfTask, mostItCosts } from './tasks/task-cost.ts'
export type { Resolved, TaskResolution } from './tasks/task-resolution.ts'
export { TaskSettler, type TaskSettlerOptions } from './tasks/task-settler.ts'
export type {
  CreatedTask,
  Intended,
  Observed,
  PollAgain,
  PollClaim,
  TaskPage,
  TaskQuery,
  TaskStore,
} from './tasks/task-store.ts'
