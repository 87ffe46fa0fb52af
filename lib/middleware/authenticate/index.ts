export { hashSecret } from '../../core/catalog/index.ts'
export { type AuthenticateOptions, authenticate } from './authenticate.ts'
export type { AccountRecord, KeyDirectory, KeyRecord } from './key-directory.ts'
export { type KeySeed, MemoryKeyDirectory, memoryKeyDirectory } from './memory-key-directory.ts'
