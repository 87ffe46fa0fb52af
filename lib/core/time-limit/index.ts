export { STOOD_STILL_MS, timeLimit } from './time-limit.ts'
export { within } from './within.ts'
