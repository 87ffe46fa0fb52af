export { type AuthenticateOptions, authenticate } from './authenticate.ts'
export { type AccountRecord, hashSecret, type KeyDirectory, type KeyRecord } from './key-directory.ts'
export { type KeySeed, MemoryKeyDirectory, memoryKeyDirectory } from './memory-key-directory.ts'
