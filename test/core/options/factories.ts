import { Keyv } from 'keyv'
import { MemoryTicketStore } from '../../../lib/endpoints/tickets/index.ts'
import * as toolkit from '../../../lib/index.ts'
import { MemoryIdempotencyStore } from '../../../lib/middleware/idempotency/index.ts'
import { MemoryLimitStore } from '../../../lib/middleware/rate-limit/index.ts'
import { UpstreamResources } from '../../../lib/middleware/references/index.ts'
import { catalog } from '../../support/one-line-catalog.ts'

const keys = toolkit.memoryKeyDirectory({ accounts: [], keys: [] })
const ledger = new toolkit.MemoryLedger()
const calls = new toolkit.MemoryCallStore()
const tickets = new MemoryTicketStore()
const levels = [{ name: 'all', by: () => 'all', rpm: 1 }]

/** The options that each factory needs, and for each option one value that it takes. */
export const FACTORIES: Record<string, { needs: object; takes: object; beside?: Record<string, object> }> = {
  beginCall: { needs: {}, takes: { protocol: () => ({}), logger: console, onBegin: () => {} } },
  telemetry: { needs: {}, takes: { catalog, states: {}, labels: ['user', 'tag:team'], maxLabelValues: 10 } },
  callLog: { needs: { writer: { add() {} } }, takes: { writer: { add() {} }, settledBy: 'ledger' } },
  authenticate: {
    needs: { keys },
    takes: {
      keys,
      region: 'eu',
      cacheKeysMs: 1,
      maxCachedKeys: 1,
      staleKeysMs: 1,
      storeTimeoutMs: 1,
      onUse() {},
    },
  },
  readRequest: {
    needs: { catalog },
    takes: {
      catalog,
      operation: () => ({}),
      bodyLimitBytes: 1,
      bodyBudgetBytes: 1e9,
      before: [toolkit.rateLimit()],
      estimateTokens: () => 1,
      model: () => 'm',
    },
  },
  idempotency: {
    needs: {},
    // Options that go with others only.
    beside: { keepWhen: { replay: true } },
    takes: {
      store: new MemoryIdempotencyStore(),
      by: () => '',
      keepRecordsMs: 1,
      claimLeaseMs: 400,
      answerLimitBytes: 0,
      answers: { write() {}, drop() {} },
      replay: true,
      keepWhen: () => true,
      handlerMs: 1,
      settledBy: 'ledger',
      unresolved: async () => undefined,
      storeTimeoutMs: 1,
      onStoreChange: () => {},
      logger: console,
    },
  },
  guard: {
    needs: { input: () => 'allow' },
    takes: {
      input: () => 'allow',
      output: () => 'allow',
      name: 'g',
      windowChars: 1,
      timeoutMs: 1,
      onError: 'allow',
      skip: () => true,
    },
  },
  cache: {
    needs: { ttl: 1000 },
    takes: {
      ttl: () => 1000,
      store: new Keyv(),
      by: () => 'ann',
      onHit: () => {},
      answerLimitBytes: 1,
      onStoreChange: () => {},
      logger: console,
    },
  },
  patterns: {
    needs: { refuse: [/a/] },
    takes: { refuse: [/a/], mask: ['b'], replacement: '', reason: 'r', timeoutMs: 1 },
  },
  moderation: {
    needs: { baseUrl: 'http://127.0.0.1:1/v1' },
    takes: { baseUrl: 'http://127.0.0.1:1/v1', apiKey: 'k', model: 'm', headers: {}, fetch: () => {} },
  },
  references: {
    needs: { resources: new UpstreamResources() },
    takes: { resources: new UpstreamResources() },
  },
  rateLimit: {
    needs: {},
    beside: { windowMs: { limit: 60 } },
    takes: {
      limit: 60,
      levels,
      tokens: () => 1,
      skip: () => false,
      store: new MemoryLimitStore(),
      onStoreError: 'refuse',
      windowMs: 2_147_483_647,
      headers: 'ietf',
      logger: console,
    },
  },
  ipSubject: { needs: {}, takes: { ipv6Prefix: 64 } },
  billingGuard: {
    needs: { reserve: () => '1' },
    takes: {
      pool: new toolkit.LeasePool({ ledger }),
      catalog,
      reserve: () => '1',
      account: () => 'a',
      key: () => null,
      handlerMs: 1,
      budgets: { matching() {}, refusal() {}, count: 0 },
    },
  },
  route: {
    needs: { catalog },
    takes: {
      catalog,
      strategy: 'latency',
      maxAttempts: 1,
      region: 'eu',
      lines: new toolkit.LineRegistry(),
      onDisconnect: 'drain',
      drainMs: 1,
    },
  },
  forward: {
    needs: { catalog, rule: { lines: ['l1'] } },
    takes: {
      catalog,
      rule: { lines: ['l1'] },
      strategy: 'latency',
      maxAttempts: 1,
      region: 'eu',
      lines: new toolkit.LineRegistry(),
      resources: new UpstreamResources(),
      bodyLimitBytes: 1,
      bodyBudgetBytes: 1e9,
    },
  },
  forwardTo: { needs: {}, takes: { lines: new toolkit.LineRegistry(), region: 'eu' } },
  errorEnvelope: { needs: {}, takes: { logger: console } },
  unknownPath: { needs: {}, takes: {} },
  modelRoutes: { needs: { catalog }, takes: { catalog, lineStatus: () => ({}), names: () => [] } },
  accountRoutes: { needs: { ledger }, takes: { ledger } },
  callLogRoutes: { needs: { store: calls }, takes: { store: calls, account: 'all' } },
  storedResponse: {
    needs: { resources: new UpstreamResources(), catalog },
    takes: { resources: new UpstreamResources(), catalog },
  },
  usageRoutes: { needs: { store: ledger.usage }, takes: { store: ledger.usage, account: 'all' } },
  ticketRoutes: {
    needs: { store: tickets, calls },
    takes: { store: tickets, calls, account: () => 'a', entryWithinMs: 0 },
  },
  adminTicketRoutes: {
    needs: { store: tickets, calls },
    takes: { store: tickets, calls, actor: () => 'a' },
  },
  adminAccess: {
    needs: {},
    takes: {
      token: 'secret',
      operators: { findByToken() {} },
      sessions: { findBySecret() {} },
    },
  },
  adminRoutes: {
    needs: { accounts: { deposit() {} }, ledger },
    takes: {
      accounts: { deposit() {} },
      ledger,
      catalog,
      videoTasks: {},
      keys: {},
      lines: { list() {}, refresh() {}, store: {} },
      authority: { rules() {}, drift() {} },
      budgets: { changes() {} },
      operators: {},
      sessions: {},
      webhooks: { store: {} },
      changes: {},
      actor: () => 'a',
    },
  },
  videoEndpoints: {
    needs: { tasks: { intend() {} }, lines: { submit() {} } },
    takes: {
      tasks: { intend() {} },
      lines: { submit() {} },
      calls: new toolkit.MemoryCallStore(),
      urlSigningSecret: 'x'.repeat(16),
      signedForMs: 1000,
      publicOrigin: 'https://models.example.com',
      budgets: { matching() {}, refusal() {} },
      logger: console,
    },
  },
}

/** Exported functions that make nothing to be mounted. */
export const NOT_MOUNTED = new Set([
  'callOf',
  'changeOrigin',
  'cutStalledCallers',
  'isWebSocketRequest',
  'loadConfig',
  'memoryKeyDirectory',
  'openCall',
  'refuseUnparsed',
  'setSessionCookie',
  'serverRefusals',
  'trustedProxies',
  'upgradeHandler',
  'upgradeOf',
])
