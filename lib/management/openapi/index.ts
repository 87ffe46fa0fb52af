export type { Answer } from '../../core/json-api/index.ts'
export { modelEndpoint } from './caller-endpoints.ts'
export type { Endpoint } from './describe-endpoint.ts'
export { type OpenApiOptions, openApiDocument } from './openapi-document.ts'
