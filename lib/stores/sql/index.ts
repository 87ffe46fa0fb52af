export { SqlAccountStore } from './accounts/sql-account-store.ts'
export { SqlBudgetStore, type SqlBudgetStoreOptions } from './accounts/sql-budget-store.ts'
export { SqlChangeLog } from './accounts/sql-change-log.ts'
export { SqlKeyDirectory } from './accounts/sql-key-directory.ts'
export { SqlKeyStore } from './accounts/sql-key-store.ts'
export { SqlLineSwitchStore, type SqlLineSwitchStoreOptions } from './accounts/sql-line-switch-store.ts'
export { SqlOperatorStore } from './accounts/sql-operator-store.ts'
export { type Seeded, SqlSeeds, seedAccountsAndKeys } from './accounts/sql-seed.ts'
export { SqlSessionStore } from './accounts/sql-session-store.ts'
export { backupDatabase, restoreDatabase } from './backup.ts'
export { SqlAnswerStore } from './calls/sql-answer-store.ts'
export { SqlCallStore, type SqlCallStoreOptions } from './calls/sql-call-store.ts'
export { SqlIdempotencyStore } from './calls/sql-idempotency-store.ts'
export { SqlResourceStore } from './calls/sql-resource-store.ts'
export { SqlTicketStore } from './calls/sql-ticket-store.ts'
export {
  type ConnectionFigures,
  connectionFigures,
  type OpenDatabaseOptions,
  openDatabase,
  undoMigrations,
} from './driver/open-database.ts'
export type { Database, Tables } from './driver/tables.ts'
export { SqlLedger, type SqlLedgerOptions } from './ledger/sql-ledger.ts'
export type { Archive } from './retention/archive.ts'
export { FolderArchive } from './retention/folder-archive.ts'
export { S3Archive, type S3ArchiveOptions } from './retention/s3-archive.ts'
export {
  type RetentionRun,
  type RetentionTimes,
  SqlRetention,
  type SqlRetentionOptions,
} from './retention/sql-retention.ts'
export { SqlTaskStore } from './tasks/sql-task-store.ts'
export { SqlUsageCounter, type SqlUsageCounterOptions } from './usage/sql-usage-counter.ts'
export { SqlUsageStore } from './usage/sql-usage-store.ts'
export { SqlWatchSource } from './webhooks/sql-watch-source.ts'
export { SqlWebhookOutbox } from './webhooks/sql-webhook-outbox.ts'
export { SqlWebhookStore } from './webhooks/sql-webhook-store.ts'
