export { jsonBody, readBody } from './json-body.ts'
