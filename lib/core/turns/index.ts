export { MAX_BYTES_AT_ONCE, takeTurn } from './turns.ts'
