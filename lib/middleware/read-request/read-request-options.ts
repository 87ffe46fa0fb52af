import type { Request } from 'express'
import type { EarlyRefuser } from '../../core/call/index.ts'
import { budgetOf } from '../../core/memory/index.ts'
import { estimatorFor, type Operation, type TokenEstimator } from '../../core/operations/index.ts'
import {
  aFunction,
  aNumber,
  type CatalogSource,
  catalogFrom,
  checkedFunction,
  checkOptions,
  neededCatalog,
  type OptionRules,
} from '../../core/options/index.ts'

/** Options of {@link readRequest}. */
export interface ReadRequestOptions {
  /**
   * The models and lines; a function if they can change while the app runs. If it returns the same catalogue for the
   * same call every time, running calls finish with the catalogue that they began with.
   */
  catalog: CatalogSource
  /**
   * The endpoint, or a function of the request, for a path of your own. Defaults to the one that the path ends with.
   */
  operation?: Operation | ((req: Request) => Operation)
  /**
   * The model of a request whose path names it. It takes the place of the body's. Defaults to the body's `model`.
   *
   * @example
   * model: (req) => req.params.deployment
   */
  model?: (req: Request) => string
  /** The largest body in bytes, after decompression. Defaults to 20 MiB. */
  bodyLimitBytes?: number
  /**
   * The most bytes of bodies that have not come whole, in this process; those of one key take at most twice
   * `bodyLimitBytes`. Defaults to 256 MiB, less where the process may take less than 1 GiB, or `bodyLimitBytes` if that is more.
   */
  bodyBudgetBytes?: number | undefined
  /**
   * Middlewares that come later. They can refuse a call before a body of more than 16 KiB is read, unless it has an
   * Idempotency-Key: it may repeat a call that was answered. Defaults to none.
   */
  before?: readonly EarlyRefuser[]
  /** Estimates the tokens of a text. Defaults to an estimator without tokenizer tables, within 15 % on average. */
  estimateTokens?: TokenEstimator
}

const RULES: OptionRules<ReadRequestOptions> = {
  catalog: neededCatalog,
  operation: {
    be: 'an operation of express-model-gateway/operations, or a function of the request that returns one',
    accepts: (value) => typeof value === 'function' || typeof (value as Operation | null)?.path === 'string',
  },
  model: aFunction('a function of the request that returns the name of a model'),
  bodyLimitBytes: aNumber('a positive number of bytes', Number.MIN_VALUE),
  bodyBudgetBytes: aNumber('a positive number of bytes', Number.MIN_VALUE),
  before: {
    be: 'an array of middlewares with refuseEarly, such as [rateLimit()]',
    accepts: (value) =>
      Array.isArray(value) && value.every((each) => typeof each?.refuseEarly === 'function'),
  },
  estimateTokens: aFunction('a function of a text that returns its tokens'),
}

const AN_OPERATION = {
  be: 'an operation, or undefined for that of the path',
  accepts: (value: unknown) =>
    value === undefined || typeof (value as Partial<Operation> | null)?.facts === 'function',
}

const A_MODEL = {
  be: 'the name of a model',
  accepts: (value: unknown) => typeof value === 'string',
}

const AN_ESTIMATE = {
  be: 'a number from 0 up',
  accepts: (value: unknown) => typeof value === 'number' && value >= 0 && value < Number.POSITIVE_INFINITY,
}

/**
 * Returns the checked settings of `readRequest`. The values that functions of the app return are checked, too.
 *
 * @throws TypeError when an option is unusable.
 */
export function readRequestSettings(options: ReadRequestOptions) {
  checkOptions('readRequest', options, RULES)
  const { catalog, operation, model, before = [], estimateTokens: own } = options
  const { bodyLimitBytes = 20 * 1024 * 1024, bodyBudgetBytes } = options
  const ownEstimate = own && checkedFunction('readRequest: "estimateTokens"', AN_ESTIMATE, own)
  return {
    catalogOf: catalogFrom(catalog),
    operation:
      typeof operation === 'function'
        ? checkedFunction('readRequest: "operation"', AN_OPERATION, operation)
        : operation,
    modelOf: model && checkedFunction('readRequest: "model"', A_MODEL, model),
    before,
    /** Returns the estimator of a request by the characters of its texts. */
    estimatorFor: ownEstimate ? () => ownEstimate : estimatorFor,
    bounds: { bodyLimitBytes, budget: budgetOf('readRequest', bodyLimitBytes, bodyBudgetBytes) },
  }
}
