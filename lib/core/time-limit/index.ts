export { timeLimit } from './time-limit.ts'
export { within } from './within.ts'
