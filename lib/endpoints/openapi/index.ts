export { modelEndpoint } from './caller-endpoints.ts'
export type { Answer, Endpoint } from './endpoint.ts'
export { type OpenApiOptions, openApiDocument } from './openapi-document.ts'
