export { BodyCollector } from './body-collector.ts'
export { PROCESS_MEMORY, withinMemory } from './process-memory.ts'
export { SharedBytes } from './shared-bytes.ts'
