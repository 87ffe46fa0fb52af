import type { ErrorCode } from '../../lib/core/errors/index.ts'

/** A caller: the account and the key of a situation. */
export interface Caller {
  readonly account?: object
  readonly key?: object
}

/** One reason for which a call of any endpoint is refused. */
export interface Refusal {
  readonly code: ErrorCode
  readonly when: string
  readonly caller?: Caller
  /** The headers that carry the key. Defaults to the caller's own. */
  readonly headers?: Readonly<Record<string, string>>
  /** The event before the call that is refused. */
  readonly before?: 'a call' | 'a running call' | 'the ledger goes away'
  /** Refused for its money, so that what is free is not. */
  readonly money?: true
  /** Another way to the refusal above it, which is the same for every endpoint of a protocol. */
  readonly further?: true
  /** Refused for what was read of it, so that what is passed on unread is not. */
  readonly read?: true
}

const CONSOLE_TOKEN = [{ alg: 'HS256', typ: 'JWT' }, { sub: 'someone' }]
  .map((part) => Buffer.from(JSON.stringify(part)).toString('base64url'))
  .concat('c2ln')
  .join('.')

/** Every refusal of authentication, limits and billing, for models whose calls cost between 0.009 and 0.019. */
export const REFUSALS: readonly Refusal[] = [
  { code: 'missing_credential', when: 'no key is sent', headers: {} },
  { code: 'invalid_credential', when: 'the key is unknown', headers: { authorization: 'Bearer sk-who' } },
  {
    further: true,
    code: 'invalid_credential',
    when: 'it is the token of a console',
    headers: { authorization: `Bearer ${CONSOLE_TOKEN}` },
  },
  {
    further: true,
    code: 'invalid_credential',
    when: 'two keys are sent',
    headers: { authorization: 'Bearer sk-caller-0', 'x-api-key': 'sk-who' },
  },
  { code: 'key_disabled', when: 'the key is disabled', caller: { key: { enabled: false } } },
  {
    code: 'key_expired',
    when: 'the key has expired',
    caller: { key: { expiresAt: '2020-01-01T00:00:00Z' } },
  },
  { code: 'ip_not_allowed', when: 'the address is another', caller: { key: { allowIps: ['10.1.2.3'] } } },
  { code: 'region_denied', when: 'the region is another', caller: { account: { regions: ['mars'] } } },
  {
    further: true,
    code: 'region_denied',
    when: 'no line is in a region of the account',
    caller: { account: { lineRegions: ['mars'] } },
  },
  {
    code: 'model_not_allowed',
    when: 'the key is for others',
    caller: { key: { allowModels: ['other'] } },
    read: true,
  },
  { code: 'rate_limited', when: 'rpm of the key', caller: { key: { limits: { rpm: 1 } } }, before: 'a call' },
  {
    further: true,
    code: 'rate_limited',
    when: 'rpm of the account',
    caller: { account: { limits: { rpm: 1 } } },
    before: 'a call',
  },
  { code: 'rate_limited', when: 'tpm of the key', caller: { key: { limits: { tpm: 1 } } }, read: true },
  {
    further: true,
    code: 'rate_limited',
    when: 'tpm of the account',
    caller: { account: { limits: { tpm: 1 } } },
    read: true,
  },
  {
    code: 'concurrency_limited',
    when: 'another call runs',
    caller: { account: { limits: { concurrency: 1 } } },
    before: 'a running call',
  },
  {
    code: 'key_quota_exhausted',
    when: 'the quota of the key is less than the price',
    caller: { key: { quota: '0.009' } },
    money: true,
  },
  {
    further: true,
    code: 'key_quota_exhausted',
    when: 'the quota of the key was spent',
    caller: { key: { quota: '0.019' } },
    before: 'a call',
    money: true,
  },
  {
    code: 'insufficient_balance',
    when: 'the account has nothing',
    caller: { account: { balance: '0' } },
    money: true,
  },
  {
    further: true,
    code: 'insufficient_balance',
    when: 'the account has spent it',
    caller: { account: { balance: '0.019' } },
    before: 'a call',
    money: true,
  },
  {
    code: 'quota_lease_exhausted',
    when: 'another call holds the money',
    caller: { account: { balance: '0.019' } },
    before: 'a running call',
    money: true,
  },
  {
    code: 'billing_unavailable',
    when: 'the ledger does not answer',
    caller: { account: { balance: '1' } },
    before: 'the ledger goes away',
    money: true,
  },
]
