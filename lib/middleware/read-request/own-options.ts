import type { Request } from 'express'
import type { Operation, TokenEstimator } from '../../core/operations/index.ts'
import { checkedFunction } from '../../core/own-functions/index.ts'

const AN_ESTIMATE = {
  be: 'a number from 0 up',
  accepts: (value: unknown) => typeof value === 'number' && value >= 0 && value < Number.POSITIVE_INFINITY,
}

const AN_OPERATION = {
  be: 'an operation, or undefined for that of the path',
  accepts: (value: unknown) =>
    value === undefined || typeof (value as Partial<Operation> | null)?.facts === 'function',
}

/** Returns an estimator of the app whose every answer counts. */
export function ownEstimator(own: TokenEstimator): TokenEstimator {
  return checkedFunction('readRequest: "estimateTokens"', AN_ESTIMATE, own)
}

const A_MODEL = {
  be: 'the name of a model',
  accepts: (value: unknown) => typeof value === 'string',
}

/** Returns a function of the app that names the model of a request. */
export function ownModel(own: (req: Request) => string): (req: Request) => string {
  return checkedFunction('readRequest: "model"', A_MODEL, own)
}

/** Returns a function of the app that names the endpoint of a request. */
export function ownOperation(own: (req: Request) => Operation | undefined) {
  return checkedFunction('readRequest: "operation"', AN_OPERATION, own)
}
