import { resolve } from 'node:path'
import { pathToFileURL } from 'node:url'
import type { RequestHandler } from 'express'
import {
  type Call,
  ConfigError,
  callOf,
  type KeyDirectory,
  type Logger,
  type Strategy,
} from 'express-model-gateway'
import { z } from 'zod'
import { errorText } from './errors.ts'
import type { DurableStores, Stores } from './stores/stores.ts'

type OneOrMore<T> = T | readonly T[]

/** Your own middlewares, by their places in the chain. */
export interface Uses {
  /** Run first, when the call has its request id. Nothing is known about the caller yet. */
  readonly first?: OneOrMore<RequestHandler> | undefined
  /** Run behind `authenticate`: `callOf(req).principal` is the account and the key. The body has not been read. */
  readonly authenticated?: OneOrMore<RequestHandler> | undefined
  /** Run behind `readRequest`: `callOf(req).request` has the body and the model. Nothing is counted or held yet. */
  readonly read?: OneOrMore<RequestHandler> | undefined
  /** Receive each call of `/v1` and `/api/v3` that has ended. What they throw is logged, and has no other effect. */
  readonly answered?: OneOrMore<(call: Call) => unknown> | undefined
}

/** The stores that can be replaced, each by its interface. */
export type OwnStores = Partial<
  Omit<
    DurableStores,
    'seeds' | 'retention' | 'database' | 'connections' | 'ping' | 'write' | 'seed' | 'close' | 'keys'
  > &
    Pick<Stores, 'limits' | 'lineStates' | 'cache'>
>

/** The parts of the gateway that an app, or the module of `--use`, can bring. */
export interface Openings {
  /** Your own middlewares. Defaults to none. */
  readonly use?: Uses | undefined
  /** The order in which lines are tried. Defaults to the one that the config names. */
  readonly strategy?: Strategy | undefined
  /** Finds keys in your own app. Defaults to the keys of the config and the admin API. */
  readonly keys?: KeyDirectory | undefined
  /** Stores of your own. Defaults to those of the database and of Redis. */
  readonly stores?: OwnStores | undefined
}

const STORES = [
  'calls',
  'claims',
  'answers',
  'ledger',
  'usage',
  'resources',
  'tasks',
  'tickets',
  'accounts',
  'adminKeys',
  'budgets',
  'lineSwitches',
  'operators',
  'sessions',
  'webhooks',
  'outbox',
  'watchSource',
  'changes',
  'limits',
  'lineStates',
  'cache',
] as const satisfies readonly (keyof OwnStores)[]

const PLACES = ['first', 'authenticated', 'read', 'answered'] as const satisfies readonly (keyof Uses)[]

const isFunctions = (value: unknown): boolean => listOf(value).every((each) => typeof each === 'function')
const isStore = (value: unknown): boolean => typeof value === 'object' && value !== null

/** Makes the members optional, each checked by itself. */
function optional<Name extends string>(
  names: readonly Name[],
  accepts: (value: unknown) => boolean,
  be: string,
) {
  const member = z.custom<unknown>(accepts, be).optional()
  return Object.fromEntries(names.map((name) => [name, member])) as Record<Name, typeof member>
}

/** The openings as options. */
export const OPENINGS = {
  use: z
    .strictObject(
      optional(PLACES, isFunctions, 'must be a middleware, or a list of them'),
      'must be an object',
    )
    .transform((use) => use as Uses)
    .optional(),
  strategy: z.custom<Strategy>((value) => typeof value === 'function', 'must be a function').optional(),
  keys: z
    .custom<KeyDirectory>(
      (value) => typeof (value as KeyDirectory | null)?.find === 'function',
      'must have "find", as memoryKeyDirectory() has',
    )
    .optional(),
  stores: z
    .strictObject(optional(STORES, isStore, 'must be a store'), 'must be an object')
    .transform((stores) => stores as OwnStores)
    .optional(),
}

/** The exports of the module of `--use`: the places of `use` and the other openings, side by side. */
const MODULE = z.strictObject({
  ...optional(PLACES, isFunctions, 'must be a middleware, or a list of them'),
  strategy: OPENINGS.strategy,
  keys: OPENINGS.keys,
  stores: OPENINGS.stores,
})

/**
 * Imports the module of `--use`.
 *
 * @param path of its file.
 * @throws {ConfigError} if it cannot be imported, or exports something else.
 */
export async function importOpenings(path: string): Promise<Openings> {
  let exported: Record<string, unknown>
  try {
    exported = { ...(await import(pathToFileURL(resolve(path)).href)) }
  } catch (error) {
    throw new ConfigError([`--use: ${path} cannot be imported (${errorText(error)})`])
  }
  const { data, error } = MODULE.safeParse(exported)
  if (!data)
    throw new ConfigError(
      error.issues.flatMap((issue) =>
        issue.code === 'unrecognized_keys'
          ? issue.keys.map((name) => `--use: ${path} exports "${name}"; it can export ${NAMES}`)
          : [`--use: ${issue.path.join('.')} ${issue.message}`],
      ),
    )
  const { strategy, keys, stores, ...use } = data
  return { use: use as Uses, strategy, keys, stores }
}

const NAMES = Object.keys(MODULE.shape).join(', ')

/** Returns a value as a list: nothing, one, or several. */
export function listOf<T>(value: OneOrMore<T> | undefined): readonly T[] {
  if (value === undefined) return []
  return Array.isArray(value) ? value : [value as T]
}

/** A function of `answered` that has not settled after this time is reported, in milliseconds. */
const SETTLES_MS = 10_000

/** Returns a middleware that passes each call to the functions of `answered` when it ends; undefined if there are none. */
export function passAnswered({ answered }: Uses, logger: Logger): RequestHandler | undefined {
  const functions = listOf(answered)
  if (functions.length === 0) return undefined
  return (req, _res, next) => {
    const call = callOf(req)
    // Registered first, it runs last: the charge and the entry of the call are known then.
    call.onEnd('answered', () => {
      for (const run of functions) void notifyOf(run, call, logger)
    })
    next()
  }
}

async function notifyOf(run: (call: Call) => unknown, call: Call, logger: Logger): Promise<void> {
  const fields = { requestId: call.id, name: run.name }
  const late = setTimeout(() => {
    logger.error(fields, `a function of "answered" has not settled after ${SETTLES_MS} ms`)
  }, SETTLES_MS)
  late.unref()
  try {
    await run(call)
  } catch (error) {
    logger.error({ ...fields, err: error }, 'a function of "answered" failed')
  } finally {
    clearTimeout(late)
  }
}
