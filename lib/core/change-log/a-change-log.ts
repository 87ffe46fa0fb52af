import { anObjectWith } from '../options/index.ts'

/** A change log as an option of a store. */
export const aChangeLog = anObjectWith('a MemoryChangeLog', 'add')
