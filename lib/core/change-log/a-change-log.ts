import { anObjectWith } from '../options/index.ts'

export const aChangeLog = anObjectWith('a MemoryChangeLog', 'add')
