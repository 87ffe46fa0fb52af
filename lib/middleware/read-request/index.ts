export { type ReadRequestOptions, readRequest } from './read-request.ts'
