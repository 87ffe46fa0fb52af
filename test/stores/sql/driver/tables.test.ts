import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { sql } from 'kysely'
import type { Database } from '../../../../lib/stores/sql/index.ts'
import { BACKENDS } from '../support/postgres-database.ts'
import { open } from '../support/temporary-database.ts'

/** Columns in their order. `!`: never null; `*`: in the primary key. */
const TABLES = [
  'accounts: id text*, name text, rpm bigint, tpm bigint, concurrency bigint, regions text, line_regions text, created_at bigint!, suspended integer!',
  'admin_changes: id text*, at bigint!, actor text!, action text!, subject text!, before text, after text!',
  'answers: id text*, part integer*, bytes bytea!',
  'budget_holds: request_id text*, wallet text*, amount bigint!',
  'budget_notices: id text*, wallet text!, amount bigint!, type text!, subject text!, data text!, sent integer!',
  'budgets: id text*, account text!, key text, user text, tag text, amount bigint!, period text!, timezone text!, hard integer!, soft text!, created_at bigint!, version bigint!, deleted integer!',
  'call_labels: label text*, id text*',
  'calls: id text*, account text, key text, model text, status integer!, error_code text, created_at bigint!, entry text!, response_body text',
  'carried_spending: wallet text*, amount bigint!, charges bigint!',
  'charges: request_id text*, account text!, key text, amount bigint!, at bigint!, basis text, cost bigint, budgets text, usage text!',
  'deposits: account text*, reference text*, amount bigint!, at bigint!, reason text',
  'holds: request_id text*, account text!, key text, amount bigint!',
  'idempotency: id text*, owner text!, fingerprint text!, state text!, expires_at bigint!, answer text',
  'keys: id text*, account text!, secret_hash text!, enabled integer!, expires_at bigint, allow_ips text, allow_models text, rpm bigint, tpm bigint, created_at bigint!, name text, note text, tags text, previous_hash text, previous_until bigint, last_used_at bigint',
  'lease_watchers: place integer*, owner text, seen_at bigint!',
  'leases: id text*, wallet text!, owner text!, held bigint!, seq integer!, last_moved bigint!, beats integer!, renewed_at bigint!, ended text, ended_at bigint',
  'line_switches: line text*, enabled integer!',
  'operator_sessions: id text*, secret_hash text!, name text!, roles text!, created_at bigint!, expires_at bigint!',
  'operators: id text*, name text!, role text!, token_hash text!, previous_hash text, previous_until bigint, created_at bigint!',
  'rest_lifts: line text*, lifts integer!',
  'seeds: kind text*, id text*, seeded_at bigint!',
  'ticket_accounts: account text*, opened_at bigint!',
  'tickets: id text*, account text!, key text, request_id text!, message text!, status text!, reply text, created_at bigint!, updated_at bigint!',
  'upkeep: name text*, owner text, until bigint, mark text',
  'upstream_resources: kind text*, id text*, account text*, key text, line text!, model text, tokens bigint!, created_at bigint!, expires_at bigint',
  'usage: account text*, grain integer*, hour bigint*, digest text*, key text!, model text!, line text!, user_id text!, tags text!, requests bigint!, refused bigint!, failed bigint!, input_tokens bigint!, cached_input_tokens bigint!, output_tokens bigint!, images bigint!, milliseconds bigint!, charged bigint!, cost bigint!, d0 bigint!, d1 bigint!, d2 bigint!, d3 bigint!, d4 bigint!, d5 bigint!, d6 bigint!, d7 bigint!, d8 bigint!, d9 bigint!, d10 bigint!, d11 bigint!',
  'usage_marks: name text*, mark text!',
  'video_tasks: id text*, request_id text!, account text!, key text, model text!, protocol text!, line text!, upstream_id text, state text!, hold bigint!, detail text!, claim_id text, claim_owner text, answer_by bigint, poll_at bigint, poll_owner text, missing_since bigint, created_at bigint!, updated_at bigint!, finished_at bigint',
  'voids: request_id text*, account text!, key text, amount bigint!, at bigint!',
  'wallets: id text*, limited integer!, funds bigint!, spent bigint!, leased bigint!, overrun bigint!',
  'webhook_deliveries: position bigint*, webhook text!, event text!, subject text!, created_at bigint!, attempts integer!, owner text, next_at bigint, status integer, error text, delivered_at bigint, queue integer!, share text!, turn bigint!',
  'webhook_events: id text*, type text!, subject text!, at bigint!, data text!, addressed integer!',
  'webhook_positions: last bigint!',
  'webhook_states: subject text*, state text!, at bigint!',
  'webhooks: id text*, url text!, events text, description text, secret text!, old_secret text, old_secret_until bigint, disabled_at bigint, dropped bigint!, created_at bigint!, format text!',
]

/** The indexes that lists and searches are read from, and the rows that are left out of them. */
const INDEXES = [
  'admin_changes_by_subject on admin_changes (subject, id)',
  'budget_notices_by_wallet on budget_notices (wallet)',
  'budgets_by_account on budgets (account, id)',
  'budgets_by_version on budgets (version)',
  'calls_by_account on calls (account, id)',
  'calls_by_error on calls (account, error_code, id) where error_code is not null',
  'calls_by_model on calls (account, model, id)',
  'calls_by_status on calls (account, status, id) where status <> 200',
  'idempotency_by_expiry on idempotency (expires_at)',
  'keys_by_account on keys (account, id)',
  'keys_by_expiry on keys (expires_at) where expires_at is not null',
  'keys_by_previous on keys (previous_hash) where previous_hash is not null',
  'leases_ended on leases (ended_at) where ended_at is not null',
  'leases_open on leases (id) where ended_at is null',
  'tickets_by_account on tickets (account, id)',
  'tickets_by_status on tickets (status, id)',
  "tickets_open on tickets (account, request_id) where status = 'open'",
  'upstream_resources_by_account on upstream_resources (account, kind, created_at, id)',
  'upstream_resources_by_expiry on upstream_resources (expires_at) where expires_at is not null',
  'usage_by_hour on usage (grain, hour)',
  'video_tasks_by_account on video_tasks (account, id)',
  'video_tasks_by_state on video_tasks (state, id)',
  'video_tasks_finished on video_tasks (finished_at) where finished_at is not null',
  'video_tasks_open on video_tasks (created_at) where finished_at is null',
  'video_tasks_to_poll on video_tasks (poll_at) where poll_at is not null',
  'video_tasks_unanswered on video_tasks (answer_by) where answer_by is not null',
  'webhook_deliveries_by_time on webhook_deliveries (created_at)',
  'webhook_deliveries_due on webhook_deliveries (webhook, next_at) where next_at is not null',
  'webhook_deliveries_listed on webhook_deliveries (webhook, position)',
  'webhook_deliveries_queued on webhook_deliveries (webhook, subject, position) where next_at is not null',
  'webhook_events_by_time on webhook_events (at, id)',
  'webhook_events_new on webhook_events (at, id) where addressed = 0',
]

interface Column {
  readonly table: string
  readonly name: string
  readonly type: string
  readonly required: boolean
  /** Whether it is in the primary key. */
  readonly keyed: boolean
}

/** The query with which each database describes its tables. */
const CATALOGS: Record<
  string,
  { columns: (db: Database) => Promise<Column[]>; indexes: (db: Database) => Promise<string[]> }
> = {
  SQLite: {
    async columns(db) {
      const { rows } = await sql<{ table: string; name: string; type: string; notnull: bigint; pk: bigint }>`
        select m.name as "table", c.name, replace(lower(c.type), 'blob', 'bytea') as type, c."notnull", c.pk from sqlite_master as m, pragma_table_info(m.name) as c
        where m.type = 'table' and m.name not like 'kysely%' order by m.name, c.cid`.execute(db)
      return rows.map(({ notnull, pk, ...column }) => ({
        ...column,
        required: Number(notnull) > 0,
        keyed: Number(pk) > 0,
      }))
    },
    async indexes(db) {
      const { rows } = await sql<{ sql: string }>`
        select sql from sqlite_master where type = 'index' and sql is not null order by name`.execute(db)
      return rows.map((row) => row.sql)
    },
  },
  Postgres: {
    async columns(db) {
      const { rows } = await sql<Column>`
        select t.relname as "table", c.attname as name,
          format_type(c.atttypid, null) || case when l.collname <> 'C' then ' ' || l.collname else '' end as type,
          c.attnotnull as required, coalesce(c.attnum = any (k.indkey), false) as keyed
        from pg_attribute as c join pg_class as t on t.oid = c.attrelid
        left join pg_collation as l on l.oid = c.attcollation
        left join pg_index as k on k.indrelid = t.oid and k.indisprimary
        where t.relkind in ('r', 'p') and not t.relispartition and t.relnamespace = 'public'::regnamespace and c.attnum > 0 and not c.attisdropped
          and t.relname not like 'kysely%'
        order by t.relname collate "C", c.attnum`.execute(db)
      return rows
    },
    async indexes(db) {
      const { rows } = await sql<{ indexdef: string }>`
        select indexdef from pg_indexes
        where schemaname = 'public' and indexdef not like 'CREATE UNIQUE%'
          and tablename !~ '^(charges|calls|call_labels|answers)_(first|default|\\d{8})$'
        order by indexname collate "C"`.execute(db)
      return rows.map(({ indexdef }) => indexdef)
    },
  },
}

function told(columns: readonly Column[]): string[] {
  return [...Map.groupBy(columns, ({ table }) => table)].map(([table, own]) => {
    const each = own.map(
      ({ name, type, required, keyed }) => `${name} ${type}${keyed ? '*' : required ? '!' : ''}`,
    )
    return `${table}: ${each.join(', ')}`
  })
}

const plain = (index: string): string =>
  index
    .toLowerCase()
    .replaceAll('"', '')
    .replace(/^create index /, '')
    .replace('public.', '')
    .replace(' on only ', ' on ')
    .replace('using btree ', '')
    .replaceAll('::text', '')
    .replace(/where \((.*)\)$/, 'where $1')

for (const { name, emptyUrl: url, skip } of BACKENDS) {
  describe(`a new database in ${name}`, { skip }, () => {
    it('has every table, with its columns, and what they must hold', async (t) => {
      const db = await open(t, await url(t))
      assert.deepEqual(told((await CATALOGS[name]?.columns(db)) ?? []), TABLES)
    })

    it('has an index for every list that is read', async (t) => {
      const db = await open(t, await url(t))
      const found = (await CATALOGS[name]?.indexes(db))?.map(plain)
      // Postgres would have to read a table of any size to make that one anew.
      const expected = INDEXES.map((index) =>
        name === 'Postgres' ? index.replace(' where status <> 200', '') : index,
      )
      assert.deepEqual(found, expected)
    })
  })
}
