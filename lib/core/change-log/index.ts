export {
  actorOf,
  type ChangeAction,
  type ChangeLog,
  type ChangeOrigin,
  type ChangeQuery,
  changedObject,
  changedSettings,
  changeOrigin,
  type RecordedChange,
} from './change-log.ts'
