import type {
  AccountStore,
  BudgetStore,
  ChangeLog,
  KeyDirectory,
  KeyStore,
  Ledger,
  LedgerBooks,
  LineSwitchStore,
  OperatorStore,
  SessionStore,
  TaskStore,
  TicketStore,
  UsageStore,
} from 'express-model-gateway'
import type { Seeds } from 'express-model-gateway/admin'
import type { CallStore } from 'express-model-gateway/call-log'
import type { GatewayConfig } from 'express-model-gateway/config'
import type { AnswerStore, IdempotencyStore } from 'express-model-gateway/idempotency'
import type { KeptStore } from 'express-model-gateway/references'
import type { ConnectionFigures, Database } from 'express-model-gateway/sql'
import type { WatchSource, WebhookOutbox, WebhookStore } from 'express-model-gateway/webhooks'

/** What has to last. */
export interface DurableStores {
  readonly keys: KeyDirectory
  readonly calls: CallStore
  /** In the database even where there is a Redis: whether a call ran is as durable as its record. */
  readonly claims: IdempotencyStore
  /** Keeps large answers apart from the call log; undefined: the call log has them. */
  readonly answers?: AnswerStore
  readonly ledger: Ledger & LedgerBooks
  /** What the charges and the calls without a charge add up to. */
  readonly usage: UsageStore
  /** Which line keeps what for whom. */
  readonly kept: KeptStore
  /** Video tasks, and the money held for them. */
  readonly tasks: TaskStore
  readonly tickets: TicketStore
  /** For the admin API, as all that follow. */
  readonly accounts: AccountStore
  readonly adminKeys: KeyStore
  readonly budgets: BudgetStore
  readonly lineSwitches: LineSwitchStore
  readonly operators: OperatorStore
  readonly sessions: SessionStore
  /** The ids that configs have added. */
  readonly seeds: Seeds
  readonly webhooks: WebhookStore
  readonly outbox: WebhookOutbox
  /** Balances and keys that webhooks are told of; undefined: they are not. */
  readonly watchSource?: WatchSource
  /** What was changed in these, and in tickets. */
  readonly changes: ChangeLog
  /** Whether the ledger completes claims and writes log entries in the transaction of a charge. */
  readonly settledByLedger: boolean
  /** Deletes old calls and charges; undefined: nobody does. For metrics, whether it cannot. */
  readonly retention?: { readonly away: boolean; readonly outages: number }
  /** The database itself; undefined: there is none. */
  readonly database?: Database
  /** The connections of each pool, for metrics. */
  connections?(): Readonly<Record<string, ConnectionFigures>>
  /** Rejects while the database cannot be reached. */
  ping(): Promise<void>
  /** Writes something of no meaning; rejects while nothing can be written. */
  write(): Promise<void>
  /** Adds accounts and keys of a config that were never added before; rejects while the database cannot be reached. */
  seed(config: GatewayConfig): Promise<void>
  close(): Promise<void>
}
