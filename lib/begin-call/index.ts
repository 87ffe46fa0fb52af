export { type BeginCallOptions, beginCall } from './begin-call.ts'
