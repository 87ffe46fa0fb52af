export {
  type CreateTarget,
  FORGOTTEN_MS,
  isFinished,
  type KnownObservation,
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
} from '../../ledger/tasks/task.ts'
export { costOfTask, mostItCosts } from '../../ledger/tasks/task-cost.ts'
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
export { RetryingWriter, type RetryingWriterOptions } from './tasks/retrying-writer.ts'
export { TaskSettler, type TaskSettlerOptions } from './tasks/task-settler.ts'
