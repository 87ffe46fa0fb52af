import type { Express, Request, RequestHandler } from 'express'
import { type Endpoint, modelEndpoint } from 'express-model-gateway/openapi'
import { OPERATIONS, type Operation } from 'express-model-gateway/operations'
import type { ReadRequestOptions } from 'express-model-gateway/read-request'

/** What Azure's clients put before the paths of the API. */
export const AZURE_ROOT = '/openai'

/** Returns the chain of model calls, with options of `readRequest` for paths that name endpoint and model otherwise. */
export type ChainOf = (naming?: Pick<ReadRequestOptions, 'operation' | 'model'>) => RequestHandler[]

const OPENAI_STYLE = OPERATIONS.filter(({ protocol }) => protocol === 'openai')
const DEPLOYMENT_PATHS = OPENAI_STYLE.map(
  ({ upstreamPath }) => `${AZURE_ROOT}/deployments/:model${upstreamPath}`,
)

/** The paths of deployments, for the OpenAPI document. */
export const DEPLOYMENT_ENDPOINTS: readonly Endpoint[] = OPENAI_STYLE.map((operation) => {
  const endpoint = modelEndpoint(operation)
  return {
    ...endpoint,
    id: `${endpoint.id}OfDeployment`,
    path: `${AZURE_ROOT}/deployments/{model}${operation.upstreamPath}`,
    summary: `${endpoint.path}, as Azure's clients name it`,
  }
})

/**
 * Serves the paths of Azure's clients. The paths of deployments name the model. All others are served as those that they
 * stand for: `/openai/v1/models` and `/openai/models` as `/v1/models`.
 */
export function mountAzure(app: Express, chainOf: ChainOf): void {
  app.post(
    DEPLOYMENT_PATHS,
    chainOf({ operation: deploymentOperation, model: ({ params }) => String(params.model) }),
  )
  app.use(AZURE_ROOT, (req, res, next) => {
    const path = req.url.replace(/^\/(?:v1(?=[/?]|$)|deployments\/[^/?]+)/i, '')
    req.baseUrl = ''
    req.url = `/v1${withoutVersion(path)}`
    req.originalUrl = req.url
    app(req, res, next)
  })
}

function deploymentOperation({ path }: Request): Operation {
  const behind = path.replace(/^(?:\/[^/]+){3}|\/$/g, '').toLowerCase()
  return OPENAI_STYLE.find(({ upstreamPath }) => upstreamPath === behind) as Operation
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
