import { DatabaseSync } from 'node:sqlite'

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

/** The labels of a call, as the log writes them. */
const LABELS: readonly (readonly [label: string, where: string])[] = [
  [`'key' || char(10) || key`, 'true'],
  [`'line' || char(10) || line`, 'true'],
  ...(
    [
      [`'user' || char(10) || user`, 'true'],
      [`'tag' || char(10) || 'team=' || team`, `team = 'search'`],
      [`'status' || char(10) || (status / 100)`, 'status >= 300'],
      [`'over' || char(10) || 10000`, 'duration >= 10000'],
      [`'over' || char(10) || 60000`, 'duration >= 60000'],
      [`'client' || char(10) || 'mine'`, 'i = 500000'],
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
  db.prepare(
    `insert into calls (id, account, key, model, status, error_code, created_at, entry, counted)
      select id, account, key, model, status, code, at, json_set((select json_remove(entry, '$.request', '$.billing.items') from calls where id = ?),
        '$.id', id, '$.account', account, '$.key', key, '$.model', model, '$.user', user, '$.status', status, '$.error_code', code,
        '$.duration_ms', duration, '$.tags.team', team, '$.created_at', strftime('%Y-%m-%dT%H:%M:%fZ', at / 1000.0, 'unixepoch'),
        '$.routing.attempts[0].line', line), 1 from made order by id`,
  ).run(template)
  for (const [label, where] of LABELS)
    db.exec(
      `insert into call_labels (label, id) select ${label} as label, id from made where ${where} order by label, id`,
    )
  for (const [grain, hour, user, tags] of [
    [0, `at / ${HOUR_MS}`, `''`, `'{}'`],
    [1, `at / ${HOUR_MS}`, 'user', `json_object('team', team)`],
    [2, `at / ${24 * HOUR_MS} * 24`, `''`, `'{}'`],
    [3, `at / ${24 * HOUR_MS} * 24`, 'user', `json_object('team', team)`],
  ] as const)
    db.exec(`insert into usage select account, ${grain}, ${hour} as hour, key || model || line || ${user}, key, model, line,
      ${user}, ${tags}, count(*), sum(status = 429), sum(status > 500), 10 * count(*), 0, 20 * count(*), 0, sum(duration),
      1000 * count(*), 500 * count(*), 0, 0, 0, 0, 0, 0, sum(status = 200), 0, 0, 0, 0, 0 from made group by 1, 3, 4 order by 1, 3, 4`)
  db.exec('commit')
  db.close()
}
