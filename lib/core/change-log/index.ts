export { aChangeLog } from './a-change-log.ts'
export type { ChangeAction, ChangeLog, ChangeOrigin, ChangeQuery, RecordedChange } from './change-log.ts'
export { actorOf, changeOrigin } from './change-origin.ts'
export { MemoryChangeLog } from './memory-change-log.ts'
