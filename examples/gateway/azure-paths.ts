import type { NextFunction, Request, Response } from 'express'
import { type Endpoint, modelEndpoint } from 'express-model-gateway/openapi'
import { OPERATIONS, type Operation } from 'express-model-gateway/operations'

/** The paths of deployments, which name the model. */
export const DEPLOYMENTS = '/openai/deployments'

const OPENAI_STYLE = OPERATIONS.filter(({ protocol }) => protocol === 'openai')

/** The paths of model calls to a deployment. */
export const DEPLOYMENT_CALLS = OPENAI_STYLE.map(({ upstreamPath }) => `${DEPLOYMENTS}/:model${upstreamPath}`)

/** The paths of model calls to a deployment, for the OpenAPI document. */
export const DEPLOYMENT_ENDPOINTS: readonly Endpoint[] = OPENAI_STYLE.map((operation) => {
  const endpoint = modelEndpoint(operation)
  return {
    ...endpoint,
    id: `${endpoint.id}OfDeployment`,
    path: `${DEPLOYMENTS}/{model}${operation.upstreamPath}`,
    summary: `${endpoint.path}, as Azure's clients name it`,
  }
})

/** Options of `readRequest` for {@link DEPLOYMENT_CALLS}. */
export const OF_DEPLOYMENT = {
  operation: ({ path }: Request) => operationAt(path) as Operation,
  model: ({ params }: Request) => String(params.model),
}

/**
 * Serves the paths of Azure's clients as those that they stand for: `/openai/v1/models` and `/openai/models` as
 * `/v1/models`. Model calls to a deployment keep their path, which names the model.
 */
export function azurePaths(req: Request, _res: Response, next: NextFunction): void {
  if (/^\/openai(?=[/?]|$)/i.test(req.url) && !(req.method === 'POST' && operationAt(req.path))) {
    const path = req.url.replace(/^\/openai(?:\/v1(?=[/?]|$)|\/deployments\/[^/?]+)?/i, '')
    req.url = `/v1${withoutVersion(path)}`
    req.originalUrl = req.url
  }
  next()
}

/** Returns the operation of a model call to a deployment; undefined for all other paths. */
function operationAt(path: string): Operation | undefined {
  const behind = /^\/openai\/deployments\/[^/]+(\/.+?)\/?$/i.exec(path)?.[1]?.toLowerCase()
  return OPENAI_STYLE.find(({ upstreamPath }) => upstreamPath === behind)
}

/** The version of Azure's API says nothing here, and must not reach a line. */
function withoutVersion(url: string): string {
  const mark = url.indexOf('?')
  if (mark < 0) return url
  const others = url
    .slice(mark + 1)
    .split('&')
    .filter((param) => !/^api-version(?:=|$)/i.test(param))
  return url.slice(0, mark) + (others.length > 0 ? `?${others.join('&')}` : '')
}
