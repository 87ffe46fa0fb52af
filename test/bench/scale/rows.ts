import { hashSecret } from '../../../lib/middleware/authenticate/index.ts'
import type { Contents, Wording } from './contents.ts'

/** How much a database holds before anything is measured. */
export interface Filling {
  /** Each with an account of its own and the wallets of both. */
  readonly keys: number
  /** Each with a charge and an entry of the call log. */
  readonly calls: number
}

/** Half of all calls are those of the first accounts, so many at most. */
export const BUSY_ACCOUNTS = 1000
/** The amount of each charge, in nano-units. */
const CHARGE = 12_600
const DEPOSIT = 1_000_000_000_000_000
/** In May 2024: older than whatever is written while measuring. */
const TIME_DIGITS = '01j'
/** Spreads neighbours; with a share of any number of accounts in common only if that is a multiple of it. */
const STRIDE = 48_271
const SCATTER = 2_654_435_761

export const accountOf = (n: number): string => `account_${n}`
export const keyOf = (n: number): string => `key_${n}`
export const secretHashOf = (n: number): string => hashSecret(`sk-${n}`)

/** Of a call that was filled in: ascending in time, and in no order within it, as those of the gateway. */
export function callIdOf(n: number): string {
  const digits = (value: bigint, length: number) => value.toString(16).padStart(length, '0')
  return `req_${TIME_DIGITS}${digits(BigInt(n), 7)}${digits(BigInt(n) * BigInt(SCATTER), 16)}`
}

/** Returns the contents of a database with so many keys and calls. */
export function contentsOf(filling: Filling): Contents {
  return {
    tables: ['accounts', 'keys', 'wallets', 'deposits', 'charges', 'calls'],
    rows: (wording) => fillStatements(filling, wording),
    sums: walletStatements,
  }
}

/** Statements that fill a table, each with its name. */
function fillStatements({ keys, calls }: Filling, wording: Wording): [string, string][] {
  const { define, source, hex, sha256 } = wording
  const busy = Math.min(keys, BUSY_ACCOUNTS)
  const insert = (table: string, columns: string, values: string, rows: number): [string, string] => [
    table,
    `${define(rows)} insert into ${table} (${columns}) select ${values} from ${source(rows)}`,
  ]
  const id = `'req_${TIME_DIGITS}' || ${hex('n', 7)} || ${hex(`n * ${SCATTER}`, 16)}`
  const whose = `(case when n % 2 = 0 then (n / 2) % ${busy} else ((n / 2) * ${STRIDE}) % ${keys} end)`
  const refused = 'n % 20 = 7'
  const model = `case n % 3 when 0 then 'chat-small' when 1 then 'chat-large' else 'chat-mini' end`
  const at = '1716000000000 + n * 6000'
  const basis = `'{"line":"openai-us","source":"measured","items":[{"unit":"input","quantity":44,"price":"0.15"},{"unit":"output","quantity":10,"price":"0.60"}]}'`
  const entry = `'{"id":"' || ${id} || '","object":"call","created_at":"2024-05-18T02:40:00.000Z","duration_ms":812,"account":"account_' || ${whose} || '","key":"key_' || ${whose} || '","client_ip":"203.0.113.7","method":"POST","path":"/v1/chat/completions","protocol":"openai","stream":false,"outcome":"completed"}'`
  return [
    insert('accounts', 'id, name, created_at', `'account_' || n, 'Account ' || n, 1716000000000`, keys),
    insert(
      'keys',
      'id, account, secret_hash, enabled, created_at',
      `'key_' || n, 'account_' || n, ${sha256(`'sk-' || n`)}, 1, 1716000000000`,
      keys,
    ),
    insert(
      'deposits',
      'account, reference, amount, at',
      `'account_' || n, 'opening', ${DEPOSIT}, 1716000000000`,
      keys,
    ),
    insert(
      'charges',
      'request_id, account, key, amount, at, basis',
      `${id}, 'account_' || ${whose}, 'key_' || ${whose}, ${CHARGE}, ${at}, ${basis}`,
      calls,
    ),
    insert(
      'calls',
      'id, account, key, model, status, error_code, created_at, entry',
      `${id}, 'account_' || ${whose}, 'key_' || ${whose}, ${model}, case when ${refused} then 502 else 200 end,
       case when ${refused} then 'upstream_error' end, ${at}, ${entry}`,
      calls,
    ),
  ]
}

/** Wallets that agree with deposits and charges. They read `calls` by account: give it its indexes first. */
function walletStatements(): [string, string][] {
  const counted = `left join (select account, count(*) as count from calls group by account) as used
    on used.account = accounts.id`
  const spent = `coalesce(used.count, 0) * ${CHARGE}`
  const columns = 'id, limited, funds, spent, leased, overrun'
  return [
    [
      'wallets of accounts',
      `insert into wallets (${columns})
       select 'account:' || accounts.id, 1, ${DEPOSIT}, ${spent}, 0, 0 from accounts ${counted}`,
    ],
    [
      'wallets of keys',
      `insert into wallets (${columns})
       select 'key:key_' || substr(accounts.id, 9), 0, 0, ${spent}, 0, 0 from accounts ${counted}`,
    ],
  ]
}
