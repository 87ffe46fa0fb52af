export { readRequest } from './read-request.ts'
export type { ReadRequestOptions } from './read-request-options.ts'
