export type { Answer, Endpoint } from './endpoint.ts'
export { type OpenApiOptions, openApiDocument } from './openapi-document.ts'
