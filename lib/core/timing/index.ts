export { isPromise, type MaybePromise } from './maybe-promise.ts'
export { machine } from './own-delay.ts'
export { STOOD_STILL_MS, timeLimit, within } from './time-limit.ts'
export { MAX_BYTES_AT_ONCE, nextTurn, takeTurn } from './turns.ts'
