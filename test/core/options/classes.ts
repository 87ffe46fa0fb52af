import { DummyDriver, Kysely, SqliteAdapter, SqliteIntrospector, SqliteQueryCompiler } from 'kysely'
import { RateLimiterMemory } from 'rate-limiter-flexible'
import { StoreGuard } from '../../../lib/core/store-guard/index.ts'
import { MemoryTicketStore } from '../../../lib/endpoints/tickets/index.ts'
import { MemoryTaskStore } from '../../../lib/endpoints/video/index.ts'
import * as toolkit from '../../../lib/index.ts'
import { Budgets } from '../../../lib/ledger/index.ts'
import { KeyUses } from '../../../lib/management/index.ts'
import { Connections } from '../../../lib/middleware/begin-call/index.ts'
import { MemoryIdempotencyStore } from '../../../lib/middleware/idempotency/index.ts'
import { LimiterStore } from '../../../lib/middleware/rate-limit/index.ts'
import { MemoryResourceStore, UpstreamResources } from '../../../lib/middleware/references/index.ts'
import { LineModels, LineSharing, LineSwitches } from '../../../lib/middleware/route/index.ts'
import {
  RedisIdempotencyStore,
  RedisLimitStore,
  RedisLineStateStore,
} from '../../../lib/stores/redis/index.ts'
import * as sql from '../../../lib/stores/sql/index.ts'

/** A database that is never asked. */
const db = new Kysely<sql.Tables>({
  dialect: {
    createAdapter: () => new SqliteAdapter(),
    createDriver: () => new DummyDriver(),
    createIntrospector: (database) => new SqliteIntrospector(database),
    createQueryCompiler: () => new SqliteQueryCompiler(),
  },
})
const ledger = new toolkit.MemoryLedger()
const redis = { options: {}, sendCommand() {}, defineCommand() {} }
const onStoreChange = (): void => {}
const noBudgets = async () => ({ version: 0, budgets: [] })
const lineStates = { exchange: async () => new Map(), watch: () => onStoreChange }
const limiter = new RateLimiterMemory({ points: 1, duration: 1 })

/** A class with options. */
export interface Optional {
  readonly make: (options: unknown) => unknown
  readonly needs: object
  /** For each option one value that it takes. */
  readonly takes: object
  /** Whether other members are let through, because a whole config can be given. */
  readonly takesOthers?: true
}

type AnyClass = new (...args: never[]) => unknown

function made(Class: AnyClass, ...before: unknown[]): Optional['make'] {
  return (options) => Reflect.construct(Class, options === undefined ? before : [...before, options])
}

/** Every public class that takes options. */
export const CLASSES: Record<string, Optional> = {
  LineSharing: {
    make: made(LineSharing),
    needs: { store: lineStates, lines: { share() {} } },
    takes: { store: lineStates, lines: { share() {} }, pollMs: 1, logger: console, onStoreChange },
  },
  Budgets: {
    make: made(Budgets),
    needs: { store: { changes: noBudgets, noteRefusal() {} } },
    takes: { store: { changes: noBudgets, noteRefusal() {} }, pollMs: 1, logger: console },
  },
  Connections: {
    make: made(Connections),
    needs: {},
    takes: { most: 1, uploadsPerKey: 1 },
  },
  CallLogWriter: {
    make: made(toolkit.CallLogWriter),
    needs: { store: new toolkit.MemoryCallStore() },
    takes: {
      store: new toolkit.MemoryCallStore(),
      logger: console,
      maxQueue: 1,
      maxQueueBytes: 1,
      batchSize: 1,
      flushMs: 0,
      keepEntriesMs: null,
    },
  },
  UpstreamResources: {
    make: made(UpstreamResources),
    needs: {},
    takes: {
      store: new MemoryResourceStore(),
      keepResourcesMs: 1,
      storeTimeoutMs: 1,
      logger: console,
      onStoreChange,
    },
  },
  LeasePool: {
    make: made(toolkit.LeasePool),
    needs: { ledger },
    takes: {
      ledger,
      logger: console,
      owner: 'me',
      onStoreError: 'deliver',
      admissionMs: 1,
      stallMs: 1,
      confirmMs: 1,
      maxQueueBytes: 1,
      onStoreChange,
      clock: { now: () => 0, wall: () => 0, after: () => () => {}, limit: (ms: number) => ms },
    },
  },
  LimiterStore: { make: made(LimiterStore, limiter), needs: {}, takes: { timeoutMs: 1, logger: console } },
  LineModels: {
    make: made(LineModels),
    needs: { lines: new toolkit.LineRegistry() },
    takes: { lines: new toolkit.LineRegistry(), refreshMs: 1000, logger: console },
  },
  LineSwitches: {
    make: made(LineSwitches),
    needs: { store: new sql.SqlLineSwitchStore(db), lines: new toolkit.LineRegistry() },
    takes: {
      store: new sql.SqlLineSwitchStore(db),
      lines: new toolkit.LineRegistry(),
      pollMs: 1,
      logger: console,
      onStoreChange,
    },
  },
  KeyUses: {
    make: made(KeyUses),
    needs: { keys: { noteUses() {} } },
    takes: { keys: { noteUses() {} }, logger: console },
  },
  MemoryCallStore: { make: made(toolkit.MemoryCallStore), needs: {}, takes: { maxEntries: 1 } },
  MemoryIdempotencyStore: {
    make: made(MemoryIdempotencyStore),
    needs: {},
    takes: { maxCompleted: 1, maxAnswerLength: 0 },
  },
  MemoryResourceStore: { make: made(MemoryResourceStore), needs: {}, takes: { maxResources: 1 } },
  MemoryLedger: {
    make: made(toolkit.MemoryLedger),
    needs: {},
    takes: { accounts: [], keys: [], unknownAccounts: 'postpaid', maxCharges: 2 },
    takesOthers: true,
  },
  MemoryTaskStore: {
    make: made(MemoryTaskStore),
    needs: { money: ledger.holds },
    takes: {
      money: ledger.holds,
      claims: new MemoryIdempotencyStore(),
      calls: new toolkit.MemoryCallStore(),
      maxFinished: 1,
    },
  },
  MemoryTicketStore: {
    make: made(MemoryTicketStore),
    needs: {},
    takes: { maxTickets: 1 },
  },
  RedisIdempotencyStore: {
    make: made(RedisIdempotencyStore),
    needs: { redis },
    takes: { redis, prefix: '' },
  },
  RedisLineStateStore: {
    make: made(RedisLineStateStore),
    needs: { redis },
    takes: { redis, prefix: '' },
  },
  RedisLimitStore: {
    make: made(RedisLimitStore),
    needs: { redis },
    takes: { redis, prefix: 'p', slotLeaseMs: 1000, timeoutMs: 1, logger: console, onStoreChange },
  },
  S3Archive: {
    make: made(sql.S3Archive),
    needs: { bucket: 'archive' },
    takes: { bucket: 'archive', prefix: '', endpoint: 'https://s3.example.com', region: 'eu-central-1' },
  },
  SqlRetention: {
    make: made(sql.SqlRetention, db),
    needs: {},
    takes: { logger: console, calls: null, charges: null, archive: new sql.FolderArchive('archive') },
  },
  SqlCallStore: { make: made(sql.SqlCallStore, db), needs: {}, takes: { searches: db } },
  SqlLedger: { make: made(sql.SqlLedger, db), needs: {}, takes: { checks: db } },
  SqlLineSwitchStore: { make: made(sql.SqlLineSwitchStore, db), needs: {}, takes: { lookUps: db } },
  StoreGuard: {
    make: made(StoreGuard),
    needs: { name: 'mine' },
    takes: { name: 'mine', logger: console, timeoutMs: 1, probeMs: 0, rejectsAlone: true, onStoreChange },
  },
}

/** Classes whose options other tests give, and those that are not made by users, or take no options. */
export const WITHOUT_OPTIONS: ReadonlySet<string> = new Set([
  'FolderArchive',
  'ConfigAuthority',
  'ConfigEntries',
  'ConfigWarnings',
  'ConfigError',
  'DatabaseTimeout',
  'FormFile',
  'GatewayError',
  // It has the options of `route`.
  'LineAccess',
  'LineRegistry',
  'MemoryKeyDirectory',
  'MemoryLimitStore',
  'MemorySlots',
  'MemoryUsageStore',
  'RetryingWriter',
  'ReplayError',
  'CoalescedEntries',
  'SqliteError',
  'StoreAway',
  'StoreWatch',
  // They poll as soon as they are made.
  'TaskSettler',
  'WebhookSender',
  'WebhookWatch',
  'VideoCharges',
  'WalletsLocked',
])
