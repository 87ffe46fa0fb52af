import { consoleLogger } from '../../../lib/core/call/index.ts'
import { OWN_TOOK_MS, TOOK_MS } from '../../../lib/stores/sql/calls/call-labels.ts'
import {
  hasPartitions,
  makePartitions,
  periodStart,
} from '../../../lib/stores/sql/driver/postgres/partitions.ts'
import type { Database } from '../../../lib/stores/sql/index.ts'
import type { Contents, Wording } from '../scale/contents.ts'

/** So many calls of an account that has nine tenths of them all; the others belong to so many accounts. */
export const SMALL_ACCOUNTS = 10_000
export const LARGE_ACCOUNT = 'account_0'

const WEEK_MS = 7 * 86_400_000
/** From this week on, so that a database that is made today can have a partition for each week, without a gap. */
export const FIRST_AT = periodStart(Date.now(), 'week')

/** How many calls there are, and in how many weeks. */
export interface Span {
  readonly calls: number
  readonly weeks: number
}

/** How much time there is between two calls. */
export function eachMs({ calls, weeks }: Span): number {
  return Math.floor((weeks * WEEK_MS) / calls)
}

/** Different numbers up to below `most` for each call, as SQL over `n`. */
const scattered = (seed: number, most: number): string => `((n * ${seed} % 4294967296) / 1024 % ${most})`

/** Returns the columns that differ between calls, as SQL over `n`. Rare values are as rare at any number of calls. */
function callColumns(calls: number): Readonly<Record<string, string>> {
  const whose = scattered(2_654_435_761, 1000)
  const which = `(1 + ${scattered(2_246_822_519, SMALL_ACCOUNTS - 1)})`
  const model = scattered(3_266_489_917, 1000)
  const end = scattered(668_265_263, 1000)
  const took = scattered(374_761_393, 1000)
  const more = scattered(1_274_126_177, 3_000_000)
  const some = Math.ceil(calls / 5)
  const isLarge = `${whose} < 900`
  const isSlow = `n % ${some} = 5`
  const isLate = `n % ${some} = 11`
  const status = `case when ${isSlow} then 200 when ${isLate} then 504 when ${end} < 950 then 200
    when ${end} < 980 then 429 when ${end} < 995 then 502 when ${end} < 999 then 400 else 503 end`
  return {
    account: `case when ${isLarge} then '${LARGE_ACCOUNT}' else 'account_' || ${which} end`,
    key: `case when ${isLarge} then 'key_0_' || (n / 7 % 10) else 'key_' || ${which} end`,
    model: `case when n % ${some} = 7 then 'chat-rare' when ${model} < 600 then 'chat-small' when ${model} < 990 then 'chat-large' else 'chat-mini' end`,
    status,
    error_code: `case ${status} when 429 then 'rate_limited' when 502 then 'upstream_error' when 400 then 'invalid_request'
      when 503 then 'upstream_overloaded' when 504 then 'upstream_timeout' end`,
    // Two of three lines have the model that four calls of ten name: the third and it are common, never together.
    line: `case when (${status}) in (400, 429) then null when n / 3 % 10 < 3 then 'us' when n / 3 % 10 < 5 or ${model} between 600 and 989 then 'eu' else 'asia' end`,
    duration_ms: `case when ${isSlow} then 700000 when (${status}) in (400, 429) then 1 + ${more} % 50
      when ${took} < 600 then 300 + ${more} % 700 when ${took} < 900 then 1000 + ${more} % 4000
      when ${took} < 990 then 5000 + ${more} % 5000 when ${took} < 999 then 10000 + ${more} % 20000 else 30000 + ${more} % 30000 end`,
    user: `case when n % 10 = 3 then 'user_' || ${scattered(2_147_483_647, 2000)} end`,
    team: `case when n % ${some} = 13 then 'rare' when n % 10 in (3, 4) then 'team_' || (n / 10 % 4) end`,
    client_request_id: `case when n % 20 = 6 then 'client_' || n end`,
  }
}

/** The id of a call: its time in Crockford's digits, as the gateway writes it, and more. */
function idOf({ hex }: Wording, span: Span): string {
  const at = `(${FIRST_AT} + n * ${eachMs(span)})`
  const digit = (place: number) =>
    `substr('0123456789abcdefghjkmnpqrstvwxyz', cast(${at} / ${32 ** place} % 32 as integer) + 1, 1)`
  const time = Array.from({ length: 10 }, (_, i) => digit(9 - i)).join(' || ')
  return `'req_' || ${time} || ${hex('n * 2654435761', 16)}`
}

/** Returns the contents of a database with these calls in its log. */
export function callContents(span: Span): Contents {
  return {
    tables: ['calls', 'call_labels'],
    rows: (wording) => callStatements(span, wording),
    prepare: (db) => makeWeeks(db, span.weeks),
  }
}

/** Makes the partitions of these weeks, where the tables have any. */
export async function makeWeeks(db: Database, weeks: number): Promise<void> {
  if (!hasPartitions(db)) return
  for (let week = 0; week < weeks; week++) await makePartitions(db, FIRST_AT + week * WEEK_MS, consoleLogger)
}

/** Statements that fill the tables of the call log, each with its name: a staged row for each call, then what is derived. */
export function callStatements(span: Span, wording: Wording): [string, string][] {
  const { calls } = span
  const { define, source, isoOf } = wording
  const columns = callColumns(calls)
  const names = Object.keys(columns)
  const values = Object.values(columns)
  const text = (column: string) => `coalesce('"' || ${column} || '"', 'null')`
  const entry = `'{"id":"' || id || '","object":"call","created_at":"' || ${isoOf('at')} || '","duration_ms":' || duration_ms ||
    ',"account":"' || account || '","key":"' || key || '","client_ip":"203.0.113.7","client_request_id":' || ${text('client_request_id')} ||
    ',"method":"POST","path":"/v1/chat/completions","protocol":"openai","model":"' || model || '","stream":false,"status":' || status ||
    ',"error_code":' || ${text('error_code')} || ',"outcome":"' || case status when 200 then 'completed' else 'failed' end ||
    '","request":null,"routing":{"region":"local","strategy":"priority","eliminated":[],"attempts":[' ||
    case when line is null then '' else '{"line":"' || line || '","protocol":"openai","upstream_model":"gpt-4o-mini","upstream_status":200,"outcome":"completed","timeout_phase":null,"detail":null,"connect_ms":1,"first_byte_ms":240,"duration_ms":800}' end ||
    ']},"usage":null,"billing":null,"limit":null,"idempotency_key":null,"original_request_id":null' ||
    case when client_user is null then '' else ',"user":"' || client_user || '"' end ||
    case when team is null then '' else ',"tags":{"team":"' || team || '"}' end || ',"response_body":null}'`
  const staged = names.map((name) => (name === 'user' ? 'client_user' : name))
  return [
    [
      'staged calls',
      `create ${wording.temporary} table staged as ${define(calls)} select ${idOf(wording, span)} as id, ${FIRST_AT} + n * ${eachMs(span)} as at,
        ${values.map((value, i) => `${value} as ${staged[i]}`)} from ${source(calls)}`,
    ],
    [
      'calls',
      `insert into calls (id, account, key, model, status, error_code, created_at, entry)
        select id, account, key, model, status, error_code, at, ${entry} from staged`,
    ],
    ...labelStatements(wording),
    ['the end of the staged calls', 'drop table staged'],
  ]
}

/** As `labelRows` has them: each measurement compares some. */
function labelStatements({ sorted }: Wording): [string, string][] {
  const least = (from: number) =>
    `case ${TOOK_MS.filter((ms) => ms >= from)
      .reverse()
      .map((ms) => `when duration_ms >= ${ms} then ${ms}`)
      .join(' ')} end`
  // The value of each kind, and whether each has a label within its account too.
  const kinds: [kind: string, value: string, scoped: boolean | string][] = [
    ['key', 'key', false],
    ['line', 'line', false],
    ['model', 'model', false],
    ['client', 'client_request_id', true],
    ['user', 'client_user', true],
    ['tag', `'team=' || team`, true],
    ['status', 'case when status <> 200 then status end', false],
    ['status', 'case when status >= 300 then status / 100 end', true],
    ['code', 'error_code', false],
    ['outcome', `case when status <> 200 then 'failed' end`, true],
    ['counted', `case when status <> 200 then 'failed' end`, true],
    ['took', least(0), least(OWN_TOOK_MS)],
  ]
  return kinds.flatMap(([kind, value, scoped]) => {
    const statement = (column: string, account: string) =>
      `insert into call_labels (label, id) select '${kind}\n' || (${column})${account} as label, id from staged
        where (${column}) is not null ${sorted}`
    const all: [string, string] = [`labels of ${kind}`, statement(value, '')]
    if (scoped === false) return [all]
    const own = scoped === true ? value : scoped
    return [all, [`labels of ${kind} and account`, statement(own, ` || '\n' || account`)]]
  })
}
