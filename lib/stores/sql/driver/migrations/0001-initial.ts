import { type Kysely, sql } from 'kysely'
import { isPostgres } from '../database.ts'
import { firstIdOf } from '../id-times.ts'
import { hasPartitions, PARTITIONED_TABLES, periodStart } from '../postgres/partitions.ts'

/** Creates all tables. Those that grow with the calls may be divided by time. */
export async function up(db: Kysely<unknown>): Promise<void> {
  const partitions = hasPartitions(db)
  const statements = [
    ...schemaOf(isPostgres(db), partitions),
    ...(partitions ? firstPartitions() : []),
    'insert into lease_watchers (place, seen_at) values (1, 0), (2, 0), (3, 0)',
    'insert into webhook_positions (last) values (0)',
  ]
  // SQLite runs one statement at a time. Postgres runs them all in one round trip: it may be far away.
  const texts = isPostgres(db) ? [statements.join(';\n')] : statements
  for (const text of texts) await sql.raw(text).execute(db)
}

/**
 * Returns the statements that create the tables and their indexes. Times are milliseconds since the epoch, amounts are
 * nano-units. Ids of calls, tickets and tasks sort by time: an index that ends with an id returns its rows newest first.
 */
function schemaOf(postgres: boolean, partitions: boolean): string[] {
  // Postgres would otherwise compare and sort text by the language of its setup, in which ids do not sort by time.
  const text = postgres ? 'text collate "C"' : 'text'
  const bytes = postgres ? 'bytea' : 'blob'
  const withoutRowid = postgres ? '' : ' without rowid'
  const byId = partitions ? ' partition by range (id)' : ''
  const byRequestId = partitions ? ' partition by range (request_id)' : ''
  // A partial index on Postgres would be of no use to queries whose status is a parameter.
  const failed = postgres ? '' : ' where status <> 200'
  return [
    `create table accounts (
      id ${text} primary key,
      name ${text},
      rpm bigint,
      tpm bigint,
      concurrency bigint,
      regions ${text},
      line_regions ${text},
      created_at bigint not null,
      suspended integer not null default 0
    )`,
    `create table keys (
      id ${text} primary key,
      account ${text} not null references accounts (id),
      secret_hash ${text} not null unique,
      enabled integer not null,
      expires_at bigint,
      allow_ips ${text},
      allow_models ${text},
      rpm bigint,
      tpm bigint,
      created_at bigint not null,
      name ${text},
      note ${text},
      tags ${text},
      previous_hash ${text},
      previous_until bigint,
      last_used_at bigint
    )`,
    'create index keys_by_account on keys (account, id)',
    'create index keys_by_previous on keys (previous_hash) where previous_hash is not null',
    'create index keys_by_expiry on keys (expires_at) where expires_at is not null',
    `create table seeds (
      kind ${text} not null,
      id ${text} not null,
      seeded_at bigint not null,
      constraint seeds_id primary key (kind, id)
    )`,
    `create table operators (
      id ${text} primary key,
      name ${text} not null unique,
      role ${text} not null,
      token_hash ${text} not null unique,
      previous_hash ${text},
      previous_until bigint,
      created_at bigint not null
    )`,
    `create table operator_sessions (
      id ${text} primary key,
      secret_hash ${text} not null unique,
      name ${text} not null,
      roles ${text} not null,
      created_at bigint not null,
      expires_at bigint not null
    )`,
    `create table admin_changes (
      id ${text} primary key,
      at bigint not null,
      actor ${text} not null,
      action ${text} not null,
      subject ${text} not null,
      before ${text},
      after ${text} not null
    )`,
    'create index admin_changes_by_subject on admin_changes (subject, id)',
    `create table line_switches (
      line ${text} primary key,
      enabled integer not null
    )`,
    `create table rest_lifts (
      line ${text} primary key,
      lifts integer not null
    )`,

    `create table calls (
      id ${text} primary key,
      account ${text},
      key ${text},
      model ${text},
      status integer not null,
      error_code ${text},
      created_at bigint not null,
      entry ${text} not null,
      response_body ${text}
    )${byId}`,
    'create index calls_by_account on calls (account, id)',
    'create index calls_by_model on calls (account, model, id)',
    `create index calls_by_status on calls (account, status, id)${failed}`,
    'create index calls_by_error on calls (account, error_code, id) where error_code is not null',
    `create table call_labels (
      label ${text} not null,
      id ${text} not null,
      constraint call_labels_id primary key (label, id)
    )${withoutRowid}${byId}`,
    `create table answers (
      id ${text} not null,
      part integer not null,
      bytes ${bytes} not null,
      constraint answers_id primary key (id, part)
    )${byId}`,
    `create table idempotency (
      id ${text} primary key,
      owner ${text} not null,
      fingerprint ${text} not null,
      state ${text} not null,
      expires_at bigint not null,
      answer ${text}
    )`,
    'create index idempotency_by_expiry on idempotency (expires_at)',
    `create table upstream_resources (
      kind ${text} not null,
      id ${text} not null,
      account ${text} not null,
      key ${text},
      line ${text} not null,
      model ${text},
      tokens bigint not null,
      created_at bigint not null,
      expires_at bigint,
      constraint upstream_resources_key primary key (kind, id, account)
    )`,
    'create index upstream_resources_by_account on upstream_resources (account, kind, created_at, id)',
    'create index upstream_resources_by_expiry on upstream_resources (expires_at) where expires_at is not null',
    `create table tickets (
      id ${text} primary key,
      account ${text} not null,
      key ${text},
      request_id ${text} not null,
      message ${text} not null,
      status ${text} not null,
      reply ${text},
      created_at bigint not null,
      updated_at bigint not null
    )`,
    'create index tickets_by_status on tickets (status, id)',
    'create index tickets_by_account on tickets (account, id)',
    "create index tickets_open on tickets (account, request_id) where status = 'open'",
    `create table ticket_accounts (
      account ${text} primary key,
      opened_at bigint not null
    )`,

    `create table wallets (
      id ${text} primary key,
      limited integer not null,
      funds bigint not null,
      spent bigint not null,
      leased bigint not null,
      overrun bigint not null
    )`,
    `create table deposits (
      account ${text} not null,
      reference ${text} not null,
      amount bigint not null,
      at bigint not null,
      reason ${text},
      constraint deposits_reference primary key (account, reference)
    )`,
    `create table leases (
      id ${text} primary key,
      wallet ${text} not null,
      owner ${text} not null,
      held bigint not null,
      seq integer not null,
      last_moved bigint not null,
      beats integer not null,
      renewed_at bigint not null,
      ended ${text},
      ended_at bigint
    )`,
    'create index leases_open on leases (id) where ended_at is null',
    'create index leases_ended on leases (ended_at) where ended_at is not null',
    `create table lease_watchers (
      place integer primary key,
      owner ${text},
      seen_at bigint not null
    )`,
    `create table charges (
      request_id ${text} primary key,
      account ${text} not null,
      key ${text},
      amount bigint not null,
      at bigint not null,
      basis ${text},
      cost bigint,
      budgets ${text},
      usage ${text} not null
    )${postgres ? byRequestId : withoutRowid}`,
    `create table voids (
      request_id ${text} primary key,
      account ${text} not null,
      key ${text},
      amount bigint not null,
      at bigint not null
    )`,
    `create table carried_spending (
      wallet ${text} primary key,
      amount bigint not null,
      charges bigint not null
    )`,
    `create table holds (
      request_id ${text} primary key,
      account ${text} not null,
      key ${text},
      amount bigint not null
    )`,
    `create table budgets (
      id ${text} primary key,
      account ${text} not null,
      key ${text},
      "user" ${text},
      tag ${text},
      amount bigint not null,
      period ${text} not null,
      timezone ${text} not null,
      hard integer not null,
      soft ${text} not null,
      created_at bigint not null,
      version bigint not null,
      deleted integer not null
    )`,
    'create index budgets_by_account on budgets (account, id)',
    'create index budgets_by_version on budgets (version)',
    `create table budget_notices (
      id ${text} primary key,
      wallet ${text} not null,
      amount bigint not null,
      type ${text} not null,
      subject ${text} not null,
      data ${text} not null,
      sent integer not null
    )`,
    'create index budget_notices_by_wallet on budget_notices (wallet)',
    `create table budget_holds (
      request_id ${text} not null,
      wallet ${text} not null,
      amount bigint not null,
      constraint budget_holds_pk primary key (request_id, wallet)
    )`,

    `create table usage (
      account ${text} not null,
      grain integer not null,
      hour bigint not null,
      digest ${text} not null,
      key ${text} not null,
      model ${text} not null,
      line ${text} not null,
      user_id ${text} not null,
      tags ${text} not null,
      requests bigint not null,
      refused bigint not null,
      failed bigint not null,
      input_tokens bigint not null,
      cached_input_tokens bigint not null,
      output_tokens bigint not null,
      images bigint not null,
      milliseconds bigint not null,
      charged bigint not null,
      cost bigint not null,
      ${Array.from({ length: 12 }, (_, i) => `d${i} bigint not null`).join(', ')},
      constraint usage_id primary key (account, grain, hour, digest)
    )${withoutRowid}`,
    'create index usage_by_hour on usage (grain, hour)',
    `create table usage_marks (
      name ${text} primary key,
      mark ${text} not null
    )`,
    `create table upkeep (
      name ${text} primary key,
      owner ${text},
      until bigint,
      mark ${text}
    )`,

    `create table video_tasks (
      id ${text} primary key,
      request_id ${text} not null,
      account ${text} not null,
      key ${text},
      model ${text} not null,
      protocol ${text} not null,
      line ${text} not null,
      upstream_id ${text},
      state ${text} not null,
      hold bigint not null,
      detail ${text} not null,
      claim_id ${text},
      claim_owner ${text},
      answer_by bigint,
      poll_at bigint,
      poll_owner ${text},
      missing_since bigint,
      created_at bigint not null,
      updated_at bigint not null,
      finished_at bigint
    )`,
    'create index video_tasks_by_account on video_tasks (account, id)',
    'create index video_tasks_by_state on video_tasks (state, id)',
    // Almost all tasks have ended, and are in none of the next three indexes.
    'create index video_tasks_to_poll on video_tasks (poll_at) where poll_at is not null',
    'create index video_tasks_unanswered on video_tasks (answer_by) where answer_by is not null',
    'create index video_tasks_open on video_tasks (created_at) where finished_at is null',
    'create index video_tasks_finished on video_tasks (finished_at) where finished_at is not null',

    `create table webhooks (
      id ${text} primary key,
      url ${text} not null,
      events ${text},
      description ${text},
      secret ${text} not null,
      old_secret ${text},
      old_secret_until bigint,
      disabled_at bigint,
      dropped bigint not null,
      created_at bigint not null,
      format ${text} not null default 'standard'
    )`,
    `create table webhook_events (
      id ${text} primary key,
      type ${text} not null,
      subject ${text} not null,
      at bigint not null,
      data ${text} not null,
      addressed integer not null
    )`,
    'create index webhook_events_by_time on webhook_events (at, id)',
    'create index webhook_events_new on webhook_events (at, id) where addressed = 0',
    `create table webhook_deliveries (
      position bigint primary key,
      webhook ${text} not null,
      event ${text} not null,
      subject ${text} not null,
      created_at bigint not null,
      attempts integer not null,
      owner ${text},
      next_at bigint,
      status integer,
      error ${text},
      delivered_at bigint,
      queue integer not null default 2,
      share ${text} not null default '',
      turn bigint not null default 0
    )`,
    // Almost all deliveries have ended, and are in neither of the next two indexes.
    'create index webhook_deliveries_due on webhook_deliveries (webhook, next_at) where next_at is not null',
    'create index webhook_deliveries_queued on webhook_deliveries (webhook, subject, position) where next_at is not null',
    'create index webhook_deliveries_listed on webhook_deliveries (webhook, position)',
    'create index webhook_deliveries_by_time on webhook_deliveries (created_at)',
    // The last position of a delivery, which is not used again when the delivery is deleted.
    'create table webhook_positions (last bigint not null)',
    `create table webhook_states (
      subject ${text} primary key,
      state ${text} not null,
      at bigint not null
    )`,
  ]
}

/** Returns the statements that create the partitions for ids from before the current period, and for ids that are in no period. */
function firstPartitions(): string[] {
  const created = PARTITIONED_TABLES.flatMap(({ name, width }) => {
    const start = firstIdOf(periodStart(Date.now(), width))
    return [
      `create table ${name}_first partition of ${name} for values from (minvalue) to ('${start}')`,
      `create table ${name}_default partition of ${name} default`,
    ]
  })
  // To compress megabytes takes longer than to write them.
  return [...created, 'alter table answers alter column bytes set storage external']
}
