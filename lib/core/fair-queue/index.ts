export { FairQueue } from './fair-queue.ts'
export { inTurn } from './in-turn.ts'
export { surplusOf } from './surplus.ts'
