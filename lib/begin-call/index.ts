export { type BeginCallOptions, beginCall } from './begin-call.ts'
export { messageClassesOf } from './message-classes.ts'
