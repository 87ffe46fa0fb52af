import { DatabaseSync } from 'node:sqlite'
import { LABELLED_CLASS, OWN_TOOK_MS, TOOK_MS } from '../../../lib/stores/sql/calls/call-labels.ts'

export const CALLS = 1_000_000
/** Of ten calls each. */
export const RARE = { model: 'model-rare', status: 503, code: 'no_candidate' } as const

const DAYS = 20
const HOUR_MS = 3_600_000
const ALPHABET = '0123456789abcdefghjkmnpqrstvwxyz'
/** The ten digits of a time in a request id. */
const TIME = Array.from(
  { length: 10 },
  (_, i) => `substr('${ALPHABET}', ((at >> ${45 - 5 * i}) & 31) + 1, 1)`,
).join(' || ')

const DIMENSIONS = `
  select i, ? + i * ? as at, u, 'user-' || u as user, 'key-' || (u % 40) as key, 'account-' || (u % 20) as account,
    case when i % 100000 = 123 then '${RARE.model}' else 'model-' || (u % 8) end as model,
    'line-' || (u % 4) as line, case u % 3 when 0 then 'search' when 1 then 'ads' else 'ops' end as team,
    case when i % 100000 = 77 then ${RARE.status} when i % 50 = 1 then 502 when i % 37 = 2 then 429 else 200 end as status,
    case when i % 200000 = 5 then 70000 else 50 + i % 3000 end as duration
  from (select value as i, value * 7919 % 400 as u from numbers)`

/** One caller has given an id of its own. */
const CLIENT_ID = `case i when 500000 then 'mine' end`
const REACHED = `case ${TOOK_MS.toReversed()
  .map((ms) => `when duration >= ${ms} then ${ms}`)
  .join(' ')} end`

const OUTCOME = `case status when 200 then 'completed' when 429 then 'refused' else 'failed' end`

/** The labels of a call, as the log writes them. */
const LABELS: readonly (readonly [label: string, where: string])[] = [
  [`'key' || char(10) || key`, 'true'],
  [`'model' || char(10) || model`, 'true'],
  [`'line' || char(10) || line`, 'true'],
  [`'status' || char(10) || status`, 'status <> 200'],
  [`'code' || char(10) || code`, 'code is not null'],
  [`'took' || char(10) || ${REACHED}`, `duration < ${OWN_TOOK_MS}`],
  ...(
    [
      [`'client' || char(10) || ${CLIENT_ID}`, `${CLIENT_ID} is not null`],
      [`'user' || char(10) || user`, 'true'],
      [`'tag' || char(10) || 'team=' || team`, 'true'],
      [`'outcome' || char(10) || ${OUTCOME}`, 'status <> 200'],
      [`'counted' || char(10) || ${OUTCOME}`, 'status <> 200'],
      [`'status' || char(10) || (status / 100)`, `status >= ${100 * LABELLED_CLASS}`],
      [`'took' || char(10) || ${REACHED}`, `duration >= ${OWN_TOOK_MS}`],
    ] as const
  ).flatMap(([label, where]): (readonly [string, string])[] => [
    [label, where],
    [`${label} || char(10) || account`, where],
  ]),
]

/** Adds calls to a SQLite database, of the last days, as the log and the usage have them. */
export function seedCalls(file: string, template: string): void {
  const db = new DatabaseSync(file)
  db.exec(
    'pragma journal_mode = off; pragma synchronous = off; pragma cache_size = -800000; pragma temp_store = memory; begin',
  )
  const step = Math.floor((DAYS * 24 * HOUR_MS) / CALLS)
  db.exec(`create temp table numbers as with recursive n(value) as
    (select 0 union all select value + 1 from n where value < ${CALLS - 1}) select value from n`)
  db.prepare(
    `create temp table made as select *, 'req_' || ${TIME} || printf('%016d', i) as id,
      case status when 200 then null when 502 then 'upstream_error' when 429 then 'rate_limited' else '${RARE.code}' end as code
      from (${DIMENSIONS.replace('?', String(Date.now() - DAYS * 24 * HOUR_MS)).replace('?', String(step))})`,
  ).run()
  const indexes = takeIndexes(db)
  db.exec(`insert into calls (id, account, key, model, status, error_code, created_at, entry)
    select id, account, key, model, status, code, at, ${entryLike(db, template)} from made order by i`)
  for (const index of indexes) db.exec(index)
  for (const [label, where] of LABELS)
    db.exec(
      `insert into call_labels (label, id) select ${label} as label, id from made where ${where} order by label, id`,
    )
  const usedBy = (
    ms: number,
    since: number,
  ) => `select account, key, model, line, user, team, at / ${ms} as hour,
    count(*) as requests, sum(status = 429) as refused, sum(status > 500) as failed, sum(status = 200) as completed,
    sum(duration) as took from made where at >= ${since} group by hour, u, model`
  db.exec(`create temp table used as ${usedBy(HOUR_MS, 0)}`)
  db.exec(`create temp table used_lately as ${usedBy(60_000, Date.now() - 48 * HOUR_MS)}`)
  for (const [grain, hour, user, tags] of [
    [0, 'hour', `''`, `'{}'`],
    [1, 'hour', 'user', `json_object('team', team)`],
    [2, 'hour / 24 * 24', `''`, `'{}'`],
    [3, 'hour / 24 * 24', 'user', `json_object('team', team)`],
    [5, 'hour', 'user', `json_object('team', team)`],
  ] as const)
    db.exec(`insert into usage select account, ${grain}, ${hour} as at, key || model || line || ${user} as digest, key, model, line,
      ${user}, ${tags}, sum(requests), sum(refused), sum(failed), 10 * sum(requests), 0, 20 * sum(requests), 0, sum(took),
      1000 * sum(requests), 500 * sum(requests), 0, 0, 0, 0, 0, 0, sum(completed), 0, 0, 0, 0, 0
      from ${grain === 5 ? 'used_lately' : 'used'} group by account, at, digest order by account, at, digest`)
  db.exec('commit')
  db.close()
}

/** Drops the indexes of the calls, and returns what makes them again: at once that takes a third of the time. */
function takeIndexes(db: DatabaseSync): string[] {
  const indexes = db
    .prepare(
      `select name, sql from sqlite_schema where type = 'index' and tbl_name = 'calls' and sql is not null`,
    )
    .all()
  for (const { name } of indexes) db.exec(`drop index ${name}`)
  return indexes.map(({ sql }) => String(sql))
}

/** SQL that makes the entry of a call from the columns of `made`: the text of another one, with what is the call's own. */
function entryLike(db: DatabaseSync, template: string): string {
  const { entry } = db.prepare('select entry from calls where id = ?').get(template) as { entry: string }
  const { request: _, ...like } = JSON.parse(entry)
  const { items: __, ...billing } = like.billing
  const [attempt] = like.routing.attempts
  const text = JSON.stringify({
    ...like,
    id: '{json_quote(id)}',
    created_at: `{json_quote(strftime('%Y-%m-%dT%H:%M:%fZ', at / 1000.0, 'unixepoch'))}`,
    duration_ms: '{duration}',
    account: '{json_quote(account)}',
    key: '{json_quote(key)}',
    client_request_id: `{json_quote(${CLIENT_ID})}`,
    model: '{json_quote(model)}',
    user: '{json_quote(user)}',
    tags: { team: '{json_quote(team)}' },
    status: '{status}',
    outcome: `{json_quote(${OUTCOME})}`,
    error_code: '{json_quote(code)}',
    routing: { ...like.routing, attempts: [{ ...attempt, line: '{json_quote(line)}' }] },
    billing,
  })
  const parts = text
    .split(/"\{|\}"/)
    .map((part, i) => (i % 2 === 1 ? part : `'${part.replaceAll("'", "''")}'`))
  return `concat(${parts.join(', ')})`
}
