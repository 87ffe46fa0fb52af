import type { IncomingHttpHeaders } from 'node:http'
import type { NextFunction, Request, RequestHandler, Response } from 'express'
import { callOf, type OpenCall, type Principal, readTags } from '../../core/call/index.ts'
import { compileAllowList, hashSecret, NO_TAGS } from '../../core/catalog/index.ts'
import { GatewayError } from '../../core/errors/index.ts'
import type { KeyDirectory, KeyRecord } from '../../core/key-directory/index.ts'
import {
  aFunction,
  aNumber,
  anObjectWith,
  aString,
  checkOptions,
  type OptionRules,
  required,
} from '../../core/options/index.ts'
import { StoreAway } from '../../core/store-guard/index.ts'
import { within } from '../../core/timing/index.ts'
import { compileIpAllowList } from './ip-allow-list.ts'
import { KeyCache } from './key-cache.ts'
import { RunningCallKeys } from './running-call-keys.ts'

/** Options of {@link authenticate}. */
export interface AuthenticateOptions {
  /** The directory in which keys are looked up. */
  keys: KeyDirectory
  /** The region of this gateway, which accounts may exclude. Defaults to none: no account is refused for it. */
  region?: string
  /**
   * How long an answer of the directory is used, in milliseconds; at most 5000. 0 asks the directory on every request
   * and waits for it. Defaults to 4000, so that a change takes effect within 5 s.
   */
  cacheKeysMs?: number
  /** The largest number of cached keys. Defaults to 10000. */
  maxCachedKeys?: number
  /** The largest age of a cached answer while the directory is unreachable, in milliseconds. Defaults to 10 minutes. */
  staleKeysMs?: number
  /**
   * How long the directory may take before it counts as unreachable, in milliseconds; at most 500 for a key with a
   * cached answer. Defaults to 2000.
   */
  storeTimeoutMs?: number
  /**
   * Called when a key is used, with its id and the time in milliseconds since the epoch; about once a second for each key.
   * It must neither wait nor throw. `new KeyUses({ keys }).note` keeps these times. Defaults to none.
   */
  onUse?: (keyId: string, at: number) => void
}

const NOTED_EVERY_MS = 1000
const LOOKUP_MS = 2000

const RULES: OptionRules<AuthenticateOptions> = {
  keys: required(anObjectWith('a KeyDirectory, such as memoryKeyDirectory({ accounts, keys })', 'find')),
  region: aString(),
  cacheKeysMs: aNumber('between 0 and 5000', 0, 5000),
  maxCachedKeys: aNumber('at least 1', 1),
  staleKeysMs: aNumber('a number of milliseconds from 0 up', 0),
  storeTimeoutMs: aNumber('above 0 and at most 60000', Number.MIN_VALUE, 60_000),
  onUse: aFunction('a function of the id of a key and a time'),
}

/** A key with the values that are computed from its record once. */
interface ResolvedKey {
  readonly principal: Principal
  /** Undefined if every address is allowed. */
  readonly mayCallFrom: ((ip: string | null) => boolean) | undefined
  /** The time when its use was last reported. */
  notedAt: number
}

/**
 * Checks the API key of a request and writes `call.principal`, and `call.tags` with those of `X-Gateway-Tags`. Refuses
 * in this order: `missing_credential`, `invalid_credential`, `key_disabled`, `key_expired`, `ip_not_allowed`,
 * `region_denied`. Models and quotas are checked once the body has been read.
 *
 * The caller's address is `req.ip`: set Express's `trust proxy` if there is a proxy in front.
 *
 * @throws TypeError at construction when an option is unusable.
 * @example
 * const keys = memoryKeyDirectory({ accounts: [{ id: 'acme' }], keys: [{ id: 'k1', account: 'acme', secret: 'sk-1' }]
 * })
 * app.use('/v1', authenticate({ keys }))
 */
export function authenticate(options: AuthenticateOptions): RequestHandler {
  checkOptions('authenticate', options, RULES)
  const { region, onUse } = options
  const keys = directoryOf(options)
  const sessions = new RunningCallKeys(options.keys, options.storeTimeoutMs ?? LOOKUP_MS, refusalOf)
  return function authenticate(req: Request, _res: Response, next: NextFunction): void {
    const call = callOf(req)
    const credential = readCredential(req.headers)
    if (credential.kind === 'missing') {
      next(call.refuse('missing_credential'))
      return
    }
    if (credential.kind === 'unusable') {
      next(call.refuse('invalid_credential', { message: UNUSABLE[credential.why] }))
      return
    }
    let refusal: GatewayError | undefined
    try {
      const secretHash = hashSecret(credential.secret)
      call.secretHash = secretHash
      call.keyWatch = sessions
      const found = keys.find(secretHash)
      if (found instanceof Promise) {
        const checked = found.then((record) => admit(call, req, record))
        void checked.catch((error: unknown) => refuseUnchecked(call, error)).then(next)
        return
      }
      refusal = admit(call, req, found)
    } catch (error) {
      refusal = refuseUnchecked(call, error)
    }
    next(refusal)
  }

  /** Writes the principal even if the key is refused, for the call log. */
  function admit(
    call: OpenCall,
    { headers }: Request,
    record: KeyRecord | undefined,
  ): GatewayError | undefined {
    const key = record && resolve(record)
    if (key) call.principal = key.principal
    const refusal = refusalOf(call, record, call.startedAt)
    if (refusal || !key) return refusal
    const tags = headers['x-gateway-tags']
    // Most calls send none, so that there is nothing to read.
    if (tags === undefined) call.tags ??= key.principal.tags ?? NO_TAGS
    else readTags(call, tags)
    if (onUse && call.startedAt - key.notedAt >= NOTED_EVERY_MS) {
      key.notedAt = call.startedAt
      onUse(key.principal.keyId, call.startedAt)
    }
    return undefined
  }

  /** Returns why the key does not admit a call at a time, in milliseconds since the epoch; undefined if it does. */
  function refusalOf(call: OpenCall, record: KeyRecord | undefined, at: number): GatewayError | undefined {
    if (!record || (record.secretUntil ?? Number.POSITIVE_INFINITY) <= at)
      return call.refuse('invalid_credential')
    if (!record.enabled || record.account.suspended === true) return call.refuse('key_disabled')
    if (record.expiresAt !== null && record.expiresAt <= at) return call.refuse('key_expired')
    const { mayCallFrom, principal } = resolve(record)
    if (mayCallFrom?.(call.clientIp) === false) return call.refuse('ip_not_allowed')
    const { regions } = record.account
    if (region !== undefined && regions !== null && !regions.includes(region))
      return call.refuse('region_denied')
    // Before the body is read, the call has no model.
    if (call.model !== null && !principal.mayUseModel(call.model)) return call.refuse('model_not_allowed')
    return undefined
  }
}

/** Refuses a key that could not be checked. Never with 401, whatever status the directory's error has. */
function refuseUnchecked(call: OpenCall, error: unknown): GatewayError {
  return error instanceof GatewayError ? call.stamp(error) : call.refuse('internal_error', { cause: error })
}

function directoryOf(options: AuthenticateOptions): KeyDirectory {
  const {
    keys,
    cacheKeysMs = 4000,
    maxCachedKeys = 10_000,
    staleKeysMs = 600_000,
    storeTimeoutMs = LOOKUP_MS,
  } = options
  if (cacheKeysMs === 0) return new CheckedDirectory(keys, storeTimeoutMs)
  return new KeyCache(new CheckedDirectory(keys), {
    freshMs: cacheKeysMs,
    staleKeysMs,
    storeTimeoutMs,
    maxEntries: maxCachedKeys,
  })
}

const resolved = new WeakMap<KeyRecord, ResolvedKey>()

function resolve(record: KeyRecord): ResolvedKey {
  const known = resolved.get(record)
  if (known) return known
  const key: ResolvedKey = {
    notedAt: 0,
    mayCallFrom: record.allowIps ? compileIpAllowList(record.allowIps) : undefined,
    principal: {
      accountId: record.account.id,
      keyId: record.id,
      accountLimits: record.account.limits,
      keyLimits: record.limits,
      lineRegions: record.account.lineRegions ?? undefined,
      mayUseModel: compileAllowList(record.allowModels ?? undefined),
      ...(record.tags && { tags: record.tags }),
    },
  }
  resolved.set(record, key)
  return key
}

/** The credential of a request. */
export type Credential =
  | { readonly kind: 'missing' }
  | { readonly kind: 'unusable'; readonly why: keyof typeof UNUSABLE }
  | { readonly kind: 'key'; readonly secret: string }

/** The messages of credentials that are no key, whatever keys there are. */
const UNUSABLE = {
  ambiguous: 'Different API keys were sent. Send one only, such as in "Authorization: Bearer <key>".',
  scheme: 'The Authorization header has no API key. Send it as "Authorization: Bearer <key>".',
  console_token: 'A session token was sent in place of an API key. Send an API key of this gateway.',
  too_long: 'The API key is too long to be one of this gateway. Check that only the key was copied.',
}

const MAX_KEY_LENGTH = 512
const BEARER = /^bearer(?: +|$)/i

/** OpenAI's browser clients send the key in this subprotocol, because browsers cannot set headers on a WebSocket. */
const KEY_SUBPROTOCOL = 'openai-insecure-api-key.'

/**
 * Reads the API key from `Authorization: Bearer <key>`, `x-api-key`, `api-key` (Azure's clients) or `x-goog-api-key`
 * (Google's), or for a WebSocket from the subprotocol `openai-insecure-api-key.<key>`. Different keys are ambiguous. A
 * console token is recognised without a look-up.
 */
export function readCredential(headers: IncomingHttpHeaders): Credential {
  const authorization = headers.authorization?.trim() ?? ''
  if (authorization !== '' && !BEARER.test(authorization)) return { kind: 'unusable', why: 'scheme' }
  const bearer = authorization.slice('bearer'.length).trim()
  const { 'x-api-key': apiKey, 'api-key': azureKey, 'x-goog-api-key': googleKey, upgrade } = headers
  const isBearerOnly = (apiKey ?? azureKey ?? googleKey ?? upgrade) === undefined
  const others = isBearerOnly ? NO_KEYS : otherKeys(headers)
  const secret = bearer || others[0]
  if (!secret) return { kind: 'missing' }
  for (const key of others) if (key !== secret) return { kind: 'unusable', why: 'ambiguous' }
  if (secret.includes('.') && isConsoleToken(secret)) return { kind: 'unusable', why: 'console_token' }
  if (secret.length > MAX_KEY_LENGTH) return { kind: 'unusable', why: 'too_long' }
  return { kind: 'key', secret }
}

const NO_KEYS: readonly string[] = []

const KEY_HEADERS = ['x-api-key', 'api-key', 'x-goog-api-key']

/** Returns the keys outside `Authorization`. Only a WebSocket handshake has subprotocols. */
function otherKeys(headers: IncomingHttpHeaders): readonly string[] {
  const { upgrade, 'sec-websocket-protocol': offered } = headers
  const keys = KEY_HEADERS.map((name) => String(headers[name] ?? '').trim())
  for (const name of upgrade === undefined ? [] : (offered ?? '').split(',')) {
    const subprotocol = name.trim()
    if (subprotocol.startsWith(KEY_SUBPROTOCOL)) keys.push(subprotocol.slice(KEY_SUBPROTOCOL.length))
  }
  return keys.filter((key) => key !== '')
}

/** Whether a secret is a JWT: three base64url parts, the first of them a JOSE header. */
function isConsoleToken(secret: string): boolean {
  if (!/^[\w-]+\.[\w-]+\.[\w-]*$/.test(secret)) return false
  try {
    // `in` throws for a value that is no object, and `JSON.parse` for a text that is no JSON.
    return 'alg' in JSON.parse(Buffer.from(secret.slice(0, secret.indexOf('.')), 'base64url').toString())
  } catch {
    return false
  }
}

type Found = KeyRecord | undefined

/** A directory of the app whose answers are checked: any promise is one, and what is no record fails the look-up. */
class CheckedDirectory implements KeyDirectory {
  readonly #directory: KeyDirectory
  readonly #storeTimeoutMs: number | undefined

  /** @param storeTimeoutMs how long the directory may take to answer, in milliseconds; left out where its user bounds that. */
  constructor(directory: KeyDirectory, storeTimeoutMs?: number) {
    this.#directory = directory
    this.#storeTimeoutMs = storeTimeoutMs
  }

  find(secretHash: string): Found | Promise<Found> {
    const answer: unknown = this.#directory.find(secretHash)
    if (typeof (answer as PromiseLike<unknown> | undefined)?.then !== 'function') return recordIn(answer)
    const found = Promise.resolve(answer as PromiseLike<unknown>).then(recordIn)
    const storeTimeoutMs = this.#storeTimeoutMs
    if (storeTimeoutMs === undefined) return found
    return within(storeTimeoutMs, found, () => {
      throw new StoreAway(`the key directory has not answered for ${storeTimeoutMs} ms`)
    })
  }
}

/** @throws TypeError if the answer of a directory is neither a record nor undefined. */
function recordIn(answer: unknown): Found {
  if (answer === undefined) return undefined
  const { id, account, limits } = (answer ?? {}) as Partial<KeyRecord>
  if (typeof id === 'string' && typeof account?.id === 'string' && account.limits && limits)
    return answer as KeyRecord
  throw new TypeError('authenticate: the answer of "keys" is no record of a key')
}
